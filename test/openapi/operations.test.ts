/** The table of operations matches the routes of the server and the calls of the client. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { PAGE_OPERATIONS } from '#src/contract/wire/operations/pages.ts';
import { SIGN_IN_OPERATIONS } from '#src/contract/wire/operations/sign-in.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { operationsOf, readDocument } from './real-document.ts';

const IDS = Object.keys(OPERATIONS).sort();

/** Returns the text of all source files of a folder. */
function sourceOf(folder: string): string {
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n');
}

function found(source: string, pattern: RegExp): string[] {
  return [...source.matchAll(pattern)].map(([, id]) => id!).sort();
}

test('each operation of the table has exactly one route, and each route is in the table', () => {
  const source = sourceOf('src/http/routes');
  const spread = /defineRoute\(\{\s*\.\.\.OPERATIONS\.(\w+),/g;
  assert.deepEqual(found(source, spread), IDS);
  assert.equal(source.match(/defineRoute\(/g)?.length, IDS.length);
});

/** Operations without a call in the client, with the reason for each. */
const WITHOUT_CALL: Readonly<Record<string, string>> = {
  getHomePage: 'a page for browsers',
  getLandingPage: 'a page for browsers',
  getSignInPage: 'a page for browsers',
  getSignInOptions: 'asked by the page for signing in',
  beginProviderSignIn: 'leads browsers to the identity provider',
  completeProviderSignIn: 'to which the identity provider leads browsers',
  signIn: 'begins the session of a browser',
  signOut: 'ends the session of a browser',
  getCommandLineSignIn: 'asked by the page for confirming a command line',
  decideCommandLineSignIn: 'asked by the page for confirming a command line',
  signOutEverywhere: 'ends the sessions of browsers',
  getConsole: 'a page for browsers',
  redirectToConsole: 'leads browsers to a page',
  getConsoleFile: 'loaded by the console',
  getApiPage: 'a page for browsers',
  redirectToApiPage: 'leads browsers to a page',
  getApiPageFile: 'loaded by the page of the API',
  openNotebookPage: 'leads browsers to a page',
  redirectToNotebookPage: 'leads browsers to a page',
  getNotebookPage: 'a page for browsers',
  getNotebookDocument: 'shown by the page of a notebook',
  followNotebookPresence: 'asked by the page of a notebook',
  followNotebookPage: 'asked by the page of a notebook',
  readFilesFromNotebookPage: 'asked by the page of a notebook',
  downloadFromNotebookPage: 'asked by the page of a notebook',
  uploadFromNotebookPage: 'asked by the page of a notebook',
  changeFilesFromNotebookPage: 'asked by the page of a notebook',
  uploadToElement: 'asked by the page of a notebook',
  readPackagesFromNotebookPage: 'asked by the page of a notebook',
  changePackagesFromNotebookPage: 'asked by the page of a notebook',
  readFromNotebookPage: 'asked by the page of a notebook',
  sendFromNotebookPage: 'asked by the page of a notebook',
  getPublicFile: 'loaded by the page of a notebook',
  getLinkedPublicFile: 'a file for browsers',
  renewPublicCode: 'asked by the page of a notebook',
  getNotebookPageIcon: 'loaded by the page of a notebook',
  getNotebookPageHealth: 'asked by the page of a notebook',
  getFrontEndFile: 'loaded by exported pages',
  getFrontEndAsset: 'loaded by exported pages',
  fireByHook: 'called by programs elsewhere, with the secret of the hook alone',
  callMcp: 'called by clients of the Model Context Protocol',
};

test('the client has a call for each operation, except for pages and their files', () => {
  const source = sourceOf('src/contract/client');
  const call =
    /(?:operation|pathOf|callOf|taggedCallOf|bytesCallOf|pagesOf)(?:<[^>]*>)?\((?:\s*connection,)?\s*'(\w+)'/g;
  const called = new Set(found(source, call));
  assert.deepEqual([...called, ...Object.keys(WITHOUT_CALL)].sort(), IDS);
});

test('the client and the routes contain no path of the interface', () => {
  const literal = /['"`]\/api\/\w+\/[\w/:.$-]*/g;
  const sources = [
    'src/contract/client',
    'src/http/routes',
    'src/http/handlers',
    'src/faces/console/views',
  ].map(sourceOf);
  assert.deepEqual(sources.join('\n').match(literal) ?? [], ['"/api/v3/openapi.json']); // a link of the landing page
});

/**
 * Operations without documentation: pages and their files, the requests of the sign-in page, and MCP, which is a separate protocol.
 */
const UNDOCUMENTED: ReadonlySet<string> = new Set([
  ...Object.keys({ ...PAGE_OPERATIONS, ...SIGN_IN_OPERATIONS }),
  'callMcp',
]);

test('the OpenAPI document has every operation of the table except pages and their files, with its method and path', async (t) => {
  const served = operationsOf(await readDocument(await startServer(t))).map(
    ({ path, method, operation }) => `${operation.operationId} ${method.toUpperCase()} ${path}`,
  );
  const declared = Object.values(OPERATIONS)
    .filter(({ operationId }) => !UNDOCUMENTED.has(operationId))
    .map(({ operationId, method, path }) => `${operationId} ${method} ${path.replace(/:(\w+)\*?/g, '{$1}')}`);
  assert.deepEqual(served.sort(), declared.sort());
});
