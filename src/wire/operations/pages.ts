import { declareOperations } from './operation.ts';
import { READ_CONDITION } from './parts.ts';

const PAGE = {
  headers: READ_CONDITION,
  responses: {
    200: { description: 'The page.', contentType: 'text/html' },
    304: { description: 'The browser already has this page.' },
  },
} as const;
const REDIRECT = {
  responses: {
    308: { description: 'To the page.', headers: { Location: 'The page, relative to this address.' } },
  },
} as const;
const FILE = {
  headers: READ_CONDITION,
  responses: {
    200: { description: 'The file. It can be cached for ever.', contentType: '*/*' },
    304: { description: 'The browser already has this file.' },
  },
} as const;

/** Web pages and their files. */
export const PAGE_OPERATIONS = declareOperations({
  getLandingPage: {
    responses: { 200: { description: 'The page.', contentType: 'text/html' } },
  },
  getConsole: PAGE,
  redirectToConsole: REDIRECT,
  getConsoleFile: FILE,
  getApiPage: PAGE,
  redirectToApiPage: REDIRECT,
  getApiPageFile: FILE,
  getFrontEndFile: {
    responses: {
      200: { description: 'The file. It never changes, so it can be cached for ever.', contentType: '*/*' },
    },
  },
  getFrontEndAsset: {
    responses: {
      200: { description: 'The file. It never changes, so it can be cached for ever.', contentType: '*/*' },
    },
  },
});
