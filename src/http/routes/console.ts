import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import {
  type PageFile,
  type PageFiles,
  pageFileHandling,
  pageHandling,
  pageRedirection,
} from '../page-files.ts';
import { defineRoute, type Route } from '../route.ts';

/**
 * All files come from this server, nothing is inline, no text is executed as code, and no other
 * page may frame the console.
 */
export const PAGE_POLICY = [
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

/** The browser console. Its files are not secret: the page fetches its data from the API, with the token of its user. */
export function consoleRoutes(files: PageFiles): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.getConsole,
      ...pageHandling(files, PAGE_POLICY),
      summary: 'Open the console in a browser',
      description: 'A web page that shows the work of the server to the holder of an access token.',
    }),
    defineRoute({
      ...OPERATIONS.redirectToConsole,
      ...pageRedirection('console'),
      summary: 'Go to the console',
    }),
    defineRoute({
      ...OPERATIONS.getConsoleFile,
      ...pageFileHandling(files, framePolicy),
      summary: 'Read a file of the console',
      description: 'A script, a style sheet or a picture. Its name changes with its content.',
    }),
  ];
}

/**
 * Returns the policy of the page in which the HTML of outputs is shown. The page has no origin and loads nothing. Only one script
 * runs: the page's own, which the policy names by its hash.
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
