import Type from 'typebox';
import { declareOperations } from './operation.ts';
import { CONTENT_HEADERS, READ_CONDITION } from './parts.ts';
import { COOKIE_HEADERS } from './sign-in.ts';

const PAGE = {
  headers: READ_CONDITION,
  responses: {
    200: { description: 'The page.', contentType: 'text/html' },
    304: { description: 'The browser already has this page.' },
  },
} as const;
const REDIRECT = {
  responses: {
    308: {
      description: 'To the page.',
      headers: { Location: 'The address of the page, relative to the requested address.' },
    },
  },
} as const;
const FILE = {
  headers: READ_CONDITION,
  responses: {
    200: { description: 'The file. It can be cached for ever.', contentType: '*/*' },
    304: { description: 'The browser already has this file.' },
  },
} as const;

const SERVER_ADDRESS = {
  host: 'The host of this server, for the addresses in the page.',
  'x-forwarded-proto': '`https` when the proxy in front received the request over TLS.',
};
const NOTEBOOK_PAGE = {
  'marimo-session-id': 'The id that the page has chosen for itself.',
  ...SERVER_ADDRESS,
};

const OF_PANEL = {
  responses: { 200: { description: 'The answer to the page.', contentType: 'application/json' } },
} as const;

const PUBLIC_FILE = {
  headers: CONTENT_HEADERS,
  responses: {
    200: { description: 'The file.', contentType: '*/*' },
    206: { description: 'The requested range.', contentType: '*/*' },
    304: { description: 'The browser already has this file.' },
  },
} as const;

/** Web pages and their files. */
export const PAGE_OPERATIONS = declareOperations({
  getHomePage: {
    headers: { ...READ_CONDITION, ...COOKIE_HEADERS, accept: 'What the client shows.' },
    responses: {
      200: { description: 'The page.', contentType: 'text/html' },
      303: { description: 'To the page for signing in.', headers: { Location: 'The page.' } },
      304: { description: 'The browser already has this page.' },
    },
  },
  getLandingPage: {
    responses: { 200: { description: 'The page.', contentType: 'text/html' } },
  },
  getConsole: PAGE,
  redirectToConsole: REDIRECT,
  getConsoleFile: FILE,
  getApiPage: PAGE,
  redirectToApiPage: REDIRECT,
  getApiPageFile: FILE,
  openNotebookPage: {
    headers: {
      accept: 'What the client shows.',
      ...SERVER_ADDRESS,
    },
    responses: { 303: { description: 'To the page.', headers: { Location: 'The page.' } } },
  },
  redirectToNotebookPage: REDIRECT,
  getNotebookPage: PAGE,
  getNotebookDocument: {
    headers: {
      accept: 'What the client shows.',
      ...SERVER_ADDRESS,
    },
    responses: {
      200: { description: "marimo's page.", contentType: 'text/html' },
      303: {
        description: 'A redirect to the page that contains this one.',
        headers: { Location: 'The page.' },
      },
    },
  },
  followNotebookPresence: {
    responses: { 200: { description: 'The people and the agent.', contentType: 'text/event-stream' } },
  },
  followNotebookPage: {
    query: Type.Object({ session_id: Type.String({ minLength: 1, maxLength: 200 }) }),
    responses: { 200: { description: 'The messages for the page.', contentType: 'text/event-stream' } },
  },
  readFilesFromNotebookPage: OF_PANEL,
  downloadFromNotebookPage: {
    headers: CONTENT_HEADERS,
    // A link of marimo's page may carry the token of the page, which is ignored.
    query: Type.Object({ path: Type.String(), access_token: Type.Optional(Type.String()) }),
    responses: {
      200: { description: 'The file.', contentType: '*/*' },
      204: { description: 'The browser stays on the page.' },
      206: { description: 'The requested range.', contentType: '*/*' },
      304: { description: 'The browser already has this file.' },
    },
  },
  uploadFromNotebookPage: {
    ...OF_PANEL,
    takesBytes: true,
    headers: { 'content-type': '`multipart/form-data` with its boundary.' },
  },
  changeFilesFromNotebookPage: { ...OF_PANEL, body: Type.Unknown(), optionalBody: true },
  uploadToElement: { ...OF_PANEL, takesBytes: true },
  readPackagesFromNotebookPage: OF_PANEL,
  changePackagesFromNotebookPage: { ...OF_PANEL, body: Type.Unknown(), optionalBody: true },
  readFromNotebookPage: {
    headers: NOTEBOOK_PAGE,
    responses: { 200: { description: 'The answer to the page.', contentType: '*/*' } },
  },
  sendFromNotebookPage: {
    headers: NOTEBOOK_PAGE,
    body: Type.Unknown(),
    optionalBody: true,
    responses: { 200: { description: 'The answer to the page.', contentType: '*/*' } },
  },
  getPublicFile: PUBLIC_FILE,
  getLinkedPublicFile: {
    headers: { ...PUBLIC_FILE.headers, accept: 'What the client shows.' },
    responses: {
      ...PUBLIC_FILE.responses,
      303: { description: 'To the page of the notebook.', headers: { Location: 'The page.' } },
    },
  },
  renewPublicCode: OF_PANEL,
  getNotebookPageIcon: {
    responses: { 200: { description: 'The icon.', contentType: 'image/x-icon' } },
  },
  getNotebookPageHealth: {
    responses: { 200: { description: 'The server answers.', contentType: 'application/json' } },
  },
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
