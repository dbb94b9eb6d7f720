import { notFound } from '#src/core/errors.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { FILE_HEADERS, PAGE_HEADERS, type PageFiles, pageReply } from '../page-files.ts';
import { defineRoute, type Route } from '../route.ts';

/** Everything comes from this server, and nothing is inline. The pictures of Swagger UI are data URLs in its style sheet. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const PAGE = 'index.html';

/** The page of the API: Swagger UI with the document of this server. It sends requests with the token that its user enters. */
export function apiPageRoutes(files: PageFiles): readonly Route[] {
  const common = {
    tags: ['Server'],
    access: 'public',
    isUndocumented: true,
    errors: ['unavailable'],
  } as const;
  return [
    defineRoute({
      ...OPERATIONS.getApiPage,
      ...common,
      isPage: true,
      summary: 'Read and try the API in a browser',
      description:
        'A web page that shows every operation of the OpenAPI document, and can send its requests.',
      handle: async ({ headers }) =>
        pageReply(
          await files.read(PAGE),
          { ...PAGE_HEADERS, 'content-security-policy': PAGE_POLICY },
          headers,
        ),
    }),
    defineRoute({
      ...OPERATIONS.redirectToApiPage,
      isUndocumented: true,
      tags: ['Server'],
      access: 'public',
      isPage: true,
      summary: 'Go to the page of the API',
      description: 'The links of the page are relative to `/docs`, without a slash at its end.',
      handle: () => ({ kind: 'empty', status: 308, headers: { location: '../docs' } }),
    }),
    defineRoute({
      ...OPERATIONS.getApiPageFile,
      ...common,
      summary: 'Read a file of the page of the API',
      description: 'A script or a style sheet. Its name changes with its content.',
      handle: async ({ params, headers }) => {
        if (params.file === PAGE) throw notFound(); // the page has its own path, with its own policy
        return pageReply(await files.read(params.file), FILE_HEADERS, headers);
      },
    }),
  ];
}
