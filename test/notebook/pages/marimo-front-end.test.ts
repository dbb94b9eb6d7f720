/**
 * Compares the requests and messages of marimo's installed front end with those that the page of a
 * notebook supports. A test fails with the name of each request or message that another version of
 * marimo adds or drops.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { pathOf } from '#src/contract/wire/paths.ts';
import { FILE_PANEL } from '#src/notebook/pages/file-panel.ts';
import { PACKAGE_PANEL } from '#src/notebook/pages/package-panel.ts';
import { PAGE_REQUESTS } from '#src/notebook/pages/page-requests.ts';

const PYTHON = process.env.TROUPE_PYTHON || join('.venv', 'bin', 'python');
const PACKAGE = execFileSync(
  PYTHON,
  ['-c', 'import importlib.util as u; print(u.find_spec("marimo").submodule_search_locations[0])'],
  { encoding: 'utf8' },
).trim();
const ASSETS = join(PACKAGE, '_static', 'assets');
const SCRIPTS = readdirSync(ASSETS)
  .filter((name) => name.endsWith('.js'))
  .map((name) => readFileSync(join(ASSETS, name), 'utf8'));

/** The requests that are answered with 404, by the part of the front end that sends them. */
const NOT_OFFERED: Readonly<Record<string, readonly string[]>> = {
  "marimo's own AI": ['ai/inline_completion', 'ai/invoke_tool', 'ai/mcp/refresh', 'ai/mcp/status', 'chat'],
  'the cache panel': ['cache/clear', 'cache/info'],
  'the panel of object stores': ['storage/download', 'storage/list_entries'],
  'the file panel': ['files/open'],
  "exports by marimo's server": [
    'export/auto_export/html',
    'export/auto_export/ipynb',
    'export/auto_export/markdown',
    'export/pdf',
    'export/requirements/install',
  ],
  "marimo's own list of notebooks": [
    'home/recent_files',
    'home/shutdown_session',
    'home/tutorial/open',
    'home/workspace_files',
  ],
  'the package panel': ['environment', 'packages/manifest', 'packages/sync'],
  'the debugger, input() and language servers': ['kernel/pdb/pm', 'kernel/stdin', 'lsp/restart'],
  'the scratchpad': ['kernel/scratchpad/run'],
};

/** The requests of the front end in whose place a script of Troupe (page-installs.ts) sends others. */
const REPLACED: Readonly<Record<string, readonly string[]>> = {
  'kernel/install_missing_packages': ['packages/install', 'packages/installation'],
};

/** The messages that no page gets, by the part of marimo's server that sends them. */
const NOT_SENT: Readonly<Record<string, readonly string[]>> = {
  'the debugger': ['active-line'],
  'the cache panel': ['cache-cleared', 'cache-info'],
  'rights that change while a page is open; Troupe ends such a page': ['consumer-capabilities'],
  'the package panel; a script of the page makes the messages of an installation': [
    'environment-operation',
    'environment-state',
  ],
  'the start of a kernel': ['kernel-startup-error', 'startup-logs', 'startup-progress'],
  'the reload of a changed file': ['reload'],
  'the panel of data sources': ['storage-download-ready', 'storage-entries'],
};

const flat = (table: Readonly<Record<string, readonly string[]>>) => Object.values(table).flat();
const sorted = (names: Iterable<string>) => [...new Set(names)].sort();

test("every request of marimo's front end is offered to pages or known to be missing", () => {
  const requests = SCRIPTS.flatMap((script) => [
    ...[...script.matchAll(/`\/api\/([a-z_/]+)`/g)].map(([, path = '']) => path),
    ...[...script.matchAll(/\.(?:get|post)\(`\/([a-z_]+\/[a-z_/]+)/g)].map(([, path = '']) => path),
  ]);
  assert.ok(requests.length > 50, 'the front end has another form: read its requests another way');
  const offered = [
    ...[PAGE_REQUESTS, PACKAGE_PANEL, FILE_PANEL].flatMap((operations) => [...operations.keys()]),
    pathOf('uploadFromNotebookPage', { notebookId: '' }).replace(/^\/n\/+/, ''),
  ].map((path) => path.replace(/^api\//, ''));
  const missing = flat(NOT_OFFERED);
  assert.deepEqual(
    offered.filter((path) => missing.includes(path)),
    [],
  );
  // The last one is a request of page-element-files.ts.
  const own = [...Object.values(REPLACED).flat(), 'element-files/discard'];
  const expected = [...offered.filter((path) => !own.includes(path)), ...missing, ...Object.keys(REPLACED)];
  assert.deepEqual(sorted(requests), sorted(expected));
});

test("every message that marimo's front end reads is sent to pages or known to be missing", () => {
  const reader = SCRIPTS.find((script) => script.includes('case`kernel-ready`:'));
  assert.ok(reader !== undefined, 'the front end has another form: read its messages another way');
  const read = [...reader.matchAll(/case`([a-z]+(?:-[a-z]+)*)`/g)].map(([, name = '']) => name);
  const messages = declared(join(PACKAGE, '_messaging', 'notification.py'));
  assert.ok(messages.length > 30);
  const outbox = readFileSync(join('src', 'confined', 'python', 'kernel', 'outbox.py'), 'utf8');
  const ofKernel = [...outbox.matchAll(/_beginnings\(\s*"""([^"]*)"""/g)].flatMap(
    ([, names = '']) => names.match(/\S+/g) ?? [],
  );
  const ofServer = ['data-source-discovery-result', 'secret-keys-result', 'kernel-ready', 'reconnected'];
  const sent = [...ofKernel, ...ofServer, 'banner', 'alert'];
  assert.deepEqual(
    sent.filter((name) => flat(NOT_SENT).includes(name)),
    [],
  );
  assert.deepEqual(sorted(messages), sorted([...sent, ...flat(NOT_SENT)]));
  assert.deepEqual(
    messages.filter((name) => !read.includes(name)),
    [],
    'the front end reads all of them',
  );
});

/** Returns the names of the messages that marimo's package declares. */
function declared(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(/name: ClassVar\[str\] = "([a-z-]+)"/g)].map(
    ([, name = '']) => name,
  );
}
