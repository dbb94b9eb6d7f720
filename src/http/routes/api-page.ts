import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { type PageFiles, pageFileHandling, pageHandling, pageRedirection } from '../page-files.ts';
import { defineRoute, type Route } from '../route.ts';

/**
 * All files come from this server, and nothing is inline. The pictures of Swagger UI are data URLs
 * in its style sheet.
 */
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

/** The page of the API: Swagger UI with the document of this server. It sends requests with the token that its user enters. */
export function apiPageRoutes(files: PageFiles): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.getApiPage,
      ...pageHandling(files, PAGE_POLICY),
      summary: 'Read and try the API in a browser',
      description:
        'A web page that shows every operation of the OpenAPI document, and can send its requests.',
    }),
    defineRoute({
      ...OPERATIONS.redirectToApiPage,
      ...pageRedirection('docs'),
      summary: 'Go to the page of the API',
    }),
    defineRoute({
      ...OPERATIONS.getApiPageFile,
      ...pageFileHandling(files),
      summary: 'Read a file of the page of the API',
      description: 'A script or a style sheet. Its name changes with its content.',
    }),
  ];
}
