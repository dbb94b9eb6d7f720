import { notFound } from '#src/core/errors.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { FILE_HEADERS, PAGE_HEADERS, type PageFile, type PageFiles, pageReply } from '../page-files.ts';
import { defineRoute, type Route } from '../route.ts';

/** Everything comes from this server, nothing is inline, no text becomes code, and no other page may frame it. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const PAGE = 'index.html';
/** The browser console. Its files are not secret: the page fetches its data from the API, with the token of its user. */
export function consoleRoutes(files: PageFiles): readonly Route[] {
  const common = {
    tags: ['Server'],
    access: 'public',
    isUndocumented: true,
    errors: ['unavailable'],
  } as const;
  return [
    defineRoute({
      ...OPERATIONS.getConsole,
      ...common,
      isPage: true,
      summary: 'Open the console in a browser',
      description: 'A web page on which the holder of an access token sees the work of the server.',
      handle: async ({ headers }) =>
        pageReply(
          await files.read(PAGE),
          { ...PAGE_HEADERS, 'content-security-policy': PAGE_POLICY },
          headers,
        ),
    }),
    defineRoute({
      ...OPERATIONS.redirectToConsole,
      isUndocumented: true,
      tags: ['Server'],
      access: 'public',
      isPage: true,
      summary: 'Go to the console',
      description: 'The links of the page are relative to `/console`, without a slash at its end.',
      // Relative, because the server may be below a path of a proxy.
      handle: () => ({ kind: 'empty', status: 308, headers: { location: '../console' } }),
    }),
    defineRoute({
      ...OPERATIONS.getConsoleFile,
      ...common,
      summary: 'Read a file of the console',
      description: 'A script, a style sheet or a picture. Its name changes with its content.',
      handle: async ({ params, headers }) => {
        // The page has its own path, with its own policy; its name stays when its content changes.
        if (params.file === PAGE) throw notFound();
        const file = await files.read(params.file);
        return pageReply(file, { ...FILE_HEADERS, ...framePolicy(file) }, headers);
      },
    }),
  ];
}

/**
 * Returns the policy of the page in which the HTML of outputs is shown. It has no origin, and its own script, named by its
 * hash, is the only one that runs; nothing is loaded from anywhere.
 */
function framePolicy({ inlineScript }: PageFile): Readonly<Record<string, string>> {
  if (inlineScript === null) return {};
  const policy = [
    'sandbox allow-scripts',
    "default-src 'none'",
    `script-src '${inlineScript}'`,
    "style-src 'unsafe-inline'",
    'img-src data:',
    'font-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
  ];
  return { 'content-security-policy': policy.join('; ') };
}
