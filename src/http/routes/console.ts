import { notFound } from '#src/core/errors.ts';
import type { READ_CONDITION } from '#src/wire/operations/parts.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import type { ConsoleFile, ConsoleFiles } from '../console-files.ts';
import { isKnown } from '../reply/entity-tag.ts';
import { type BytesReply, type EmptyReply, raw } from '../reply/reply.ts';
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
const PAGE_HEADERS = {
  'cache-control': 'no-cache',
  'content-security-policy': PAGE_POLICY,
  'cross-origin-opener-policy': 'same-origin',
};
const FILE_HEADERS = { 'cache-control': 'public, max-age=31536000, immutable' };

/** The browser console. Its files are not secret: the page fetches its data from the API, with the token of its user. */
export function consoleRoutes(files: ConsoleFiles): readonly Route[] {
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
      handle: async ({ headers }) => answer(await files.read(PAGE), PAGE_HEADERS, headers),
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
        return answer(file, { ...FILE_HEADERS, ...framePolicy(file) }, headers);
      },
    }),
  ];
}

/**
 * Returns the file, or 304 when the browser has it. A 304 has the same headers, because a browser replaces the stored headers
 * with them: with the general policy of this server, the page could load nothing.
 */
function answer(
  { contentType, bytes, etag }: ConsoleFile,
  own: Readonly<Record<string, string>>,
  requested: Readonly<Record<keyof typeof READ_CONDITION, string>>,
): BytesReply | EmptyReply {
  const headers = { ...own, etag };
  if (isKnown(requested['if-none-match'], etag)) return { kind: 'empty', status: 304, headers };
  return raw(contentType, bytes, headers);
}

/**
 * Returns the policy of the page in which the HTML of outputs is shown. It has no origin, and its own script, named by its
 * hash, is the only one that runs; nothing is loaded from anywhere.
 */
function framePolicy({ inlineScript }: ConsoleFile): Readonly<Record<string, string>> {
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
