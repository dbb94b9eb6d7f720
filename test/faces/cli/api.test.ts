import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { Workspace } from '#src/contract/wire/identity.ts';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const { client } = server;
const shell = new Shell(test, server);
const { troupe, json, text } = shell;

test('a resource without a command of its own is created, read, changed and deleted with its operations', async () => {
  const created = await json<Notebook>(['api', 'createNotebook', '--body', '{"title": "Sales"}']);
  const { id, title } = await json<Notebook>(['api', 'getNotebook', '--notebook-id', created.id]);
  assert.deepEqual([id, title], [created.id, 'Sales']);
  const change = JSON.stringify({ title: 'Sales of May', expectedUpdatedAt: created.updatedAt });
  const args = ['api', 'updateNotebook', '--notebook-id', id, '--body', '-'];
  assert.equal((JSON.parse((await troupe(args, { input: change })).out) as Notebook).title, 'Sales of May');
  const secret = ['api', 'setNotebookSecret', '--notebook-id', id, '--name', 'KEY', '--body', '-'];
  assert.equal((await troupe(secret, { input: '{"value": "hidden"}' })).exitCode, 0);
  assert.deepEqual(
    (await client.notebooks.secrets(id)).map(({ name }) => name),
    ['KEY'],
  );
  assert.deepEqual(await troupe(['api', 'deleteNotebook', '--notebook-id', id]), {
    exitCode: 0,
    out: '',
    err: '',
  });
  await assert.rejects(client.notebooks.get(id), { code: 'not_found' });
});

test('with --json an answer without a body is null', async () => {
  const { id } = await client.notebooks.create();
  assert.equal(await json(['api', 'deleteNotebook', '--notebook-id', id]), null);
});

test('parameters of the query are options, and the answer is JSON', async () => {
  await client.notebooks.create({ title: 'Weather of June' });
  const last = await client.notebooks.create({ title: 'Weather of July' });
  const list = ['api', 'listNotebooks', '--title', 'weather', '--order', 'desc', '--limit', '1'];
  const page = JSON.parse(await text(list)) as { items: Notebook[]; nextCursor: string | null };
  assert.deepEqual(
    page.items.map(({ id }) => id),
    [last.id],
  );
  assert.notEqual(page.nextCursor, null);
});

test('a parameter with the name of a global option has the suffix -parameter', async () => {
  const { id, updatedAt } = await client.notebooks.create({ title: 'Old' });
  const args = ['api', 'getNotebookVersion', '--notebook-id', id, '--version-parameter', updatedAt];
  assert.equal((await json<Notebook>(args)).title, 'Old');
});

test('an idempotency key and a condition are options that become headers', async () => {
  const create = ['api', 'createNotebook', '--body', '{}', '--idempotency-key', 'once'];
  const [first, second] = [await json<Notebook>(create), await json<Notebook>(create)];
  assert.equal(first.id, second.id);
  const stale = ['api', 'deleteNotebook', '--notebook-id', first.id, '--if-match', '"other"'];
  const { exitCode, err } = await troupe(stale);
  assert.equal(exitCode, 1);
  assert.match(err, /\(precondition_failed/);
});

test('the events of a stream are printed, each on a line, until the stream ends', async () => {
  const notebook = await openNotebook(server, { a: 'print("seen")' });
  await notebook.run(['a']);
  const followed = shell.start(['api', 'followNotebookSession', '--session-id', notebook.id]);
  await followed.until('session.replayed');
  await notebook.close();
  const { exitCode, out } = await followed.ended;
  assert.equal(exitCode, 0);
  const events = out
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { type: string }).type);
  assert.equal(events[0], 'session.snapshot');
  assert.equal(events.at(-1), 'session.closed');
  const silent = await troupe(['api', 'followNotebookSession', '--session-id', notebook.id]);
  assert.deepEqual([silent.exitCode, silent.out], [0, ''], 'the stream of a closed session has no events');
});

test('an operation sends a body from a file, and prints a received file unchanged', async () => {
  writeFileSync(join(shell.cwd, 'numbers.csv'), 'a,b\n1,2\n');
  const put = ['api', 'putFile', '--path', 'data/numbers.csv', '--content', 'numbers.csv'];
  const stored = await json<{ path: string; bytes: number }>(put);
  assert.deepEqual([stored.path, stored.bytes], ['data/numbers.csv', 8]);
  assert.equal((await troupe(['api', 'getFile', '--path', 'data/numbers.csv'])).out, 'a,b\n1,2\n');
  assert.match((await troupe(['api', 'getMetrics'])).out, /# EOF\n$/);
});

test('operations of the caller need no workspace, and the errors of other operations explain how to choose a workspace', async () => {
  const env = { SERVICE_WORKSPACE_ID: '' };
  const created = await json<Workspace>(['api', 'createWorkspace', '--body', '{"name": "Research"}']);
  const mine = JSON.parse((await troupe(['api', 'getMe'], { env })).out) as {
    workspaces: readonly { id: string }[];
  };
  assert.ok(mine.workspaces.some(({ id }) => id === created.id));
  const { exitCode, err } = await troupe(['api', 'listNotebooks'], { env });
  assert.equal(exitCode, 4);
  assert.match(err, /^troupe: No workspace of http\S+ is chosen\. Run: troupe login\./);
  const elsewhere = JSON.parse(await text(['api', 'listNotebooks', '--workspace', created.id]));
  assert.deepEqual(elsewhere.items, []);
});

/** Command lines with a mistake, and the sentence that they get. */
const WRONG: readonly (readonly [args: string, sentence: RegExp])[] = [
  ['listNotebook', /unknown command 'listNotebook'\n\(Did you mean listNotebooks\?\)/],
  ['getNotebook', /required option '--notebook-id <value>' not specified/],
  ['getNotebook --notebook-id=', /'--notebook-id <value>' argument '' is invalid\. It must not be empty\./],
  ['listRuns --create-by ada', /unknown option '--create-by'\n\(Did you mean --created-by\?\)/],
  ['listRuns --limit few', /argument 'few' is invalid\. It must be a whole number\./],
  ['listRuns --order up', /argument 'up' is invalid\. Allowed choices are asc, desc\./],
  ['getUsage extra', /too many arguments for 'getUsage'/],
  [
    'createNotebook',
    /^troupe: createNotebook needs a body: --body with its JSON, or --body - for standard input\./,
  ],
  ['createNotebook --body {', /^troupe: The value of --body is not valid JSON/],
  ['createNotebook --body -', /^troupe: Standard input is not valid JSON/],
  ['getNotebook --notebook-id nb_1 --body {}', /unknown option '--body'/],
  ['putFile --path a.csv', /required option '--content <file>' not specified/],
  ['putFile --path a.csv --content missing.csv', /^troupe: There is no file missing\.csv\.\n/],
];

for (const [args, sentence] of WRONG)
  test(`\`troupe api ${args}\` is a usage error with a sentence about the mistake`, async () => {
    const { exitCode, out, err } = await troupe(['api', ...args.split(' ')]);
    assert.deepEqual([exitCode, out], [2, ''], err);
    assert.match(err, sentence);
  });

test('a refusal of the server names the wrong member of the body', async () => {
  const { exitCode, err } = await troupe(['api', 'createNotebook', '--body', '{"titel": "Sales"}']);
  assert.equal(exitCode, 1);
  assert.match(err, /titel/);
  assert.match(err, /\(invalid_request at /);
});

test('the help lists every operation of programs with its method and path', async () => {
  const { out } = await troupe(['api', '--help']);
  const lines = out.replace(/\s+/g, ' ');
  const documented = Object.values(OPERATIONS).filter(({ path }) =>
    /^\/(api\/|healthz|readyz|metrics)/.test(path),
  );
  assert.ok(documented.length > 80);
  for (const { operationId, method, path } of documented)
    assert.ok(lines.includes(`${operationId} ${method} ${path.replace(/:(\w+)\*?/g, '{$1}')}`), operationId);
});

test('the help of an operation has its parameters, the members of its body, its answers and an example that works', async () => {
  for (const args of [
    ['api', 'createWorkspace', '--help'],
    ['help', 'api', 'createWorkspace'],
  ]) {
    const { exitCode, out } = await troupe(args);
    assert.equal(exitCode, 0);
    assert.match(out, /^POST \/api\/v3\/workspaces$/m);
    assert.match(out, /^ {2}--idempotency-key <value> /m);
    assert.match(out, /^Body:\n {2}name \(required\) +string\./m);
    assert.match(out, /^ {2}201 {2}The workspace was created\.$/m);
    const [, body = ''] = /^ {2}troupe api createWorkspace --body '(.*)'$/m.exec(out) ?? [];
    assert.equal((await troupe(['api', 'createWorkspace', '--body', body])).exitCode, 0);
  }
  assert.match((await troupe(['api', 'getRun', '--help'])).out, /troupe api getRun --run-id RUN_ID$/m);
});

test('completion offers the operations, and the options of each', async () => {
  const { out } = await troupe(['completion', 'bash']);
  assert.match(out, /^ {4}'api'\) offered='listNotebooks createNotebook /m);
  assert.match(out, /^ {4}'api getNotebook'\) offered='' options='--notebook-id --if-none-match /m);
  assert.match(out, /^ {4}'api createNotebook'\) .* options='--idempotency-key --body /m);
});
