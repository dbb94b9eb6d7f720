// own process: it counts calls
/**
 * How many calls of our functions a request costs. The count shows the length of its way through
 * the code, and does not depend on the machine's speed. A change that needs more calls has to be
 * worth them; the number here is then raised with it.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import test from 'node:test';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import { type CallCounts, countCalls, described, total } from '#test/support/call-count.ts';
import { callCode } from '#test/support/code-call.ts';
import { type Codes, openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { descendants, eventually, kernelsOf } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const MAX_CALLS_OF_A_GET = 45;
const MAX_CALLS_OF_A_PATCH = 193;
const MAX_CALLS_OF_A_CREATE = 179;
const MAX_CALLS_OF_AN_ENVIRONMENT = 166;
/**
 * The messages of the kernel arrive in one piece or in several, so two counts vary. On a busy machine the least counts are 885 and 1,453.
 * On a quiet machine each message of a cancelled run is a piece of its own, and the count is 1,620 to 1,690.
 */
const MAX_CALLS_OF_A_CODE_CALL = 910;
const MAX_CALLS_OF_A_CANCELLED_RUN = 1_750;
const MAX_CALLS_UNTIL_A_RUN_IS_ACCEPTED = 338;
/** From the request until a follower of the session has its last event. The least is 1,237 here: see the calls of a code call. */
const MAX_CALLS_OF_A_RUN = 1_260;
const MAX_CALLS_OF_AN_EDIT_OF_A_PAGE = 300;
/** The JSON of a larger notebook is in pieces of 256 cells, and each piece takes some calls. */
const BUDGETS_OF_AN_EDIT_BY_CELLS = [
  [10, 300],
  [1_000, 520],
  [10_000, 1_100],
] as const;

const server = await startServer(test);
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
test.after(() => agent.destroy());

const OWN: http.OutgoingHttpHeaders = {
  authorization: `Bearer ${server.owner.token}`,
  'service-workspace-id': server.owner.workspaceId,
};

/** Returns a function that stops the present kernels or lets them go on. While they are stopped, nothing of their work is counted. */
function kernelSignals(): (name: 'SIGSTOP' | 'SIGCONT') => void {
  const kernels = kernelsOf(server.pid).flatMap((kernel) => [kernel, ...descendants(kernel.pid)]);
  return (name) => {
    for (const { pid } of kernels) process.kill(pid, name);
  };
}

/** Fails with the number of calls, and with the functions that were called. */
function assertWithin(counts: CallCounts, most: number): void {
  assert.ok(
    total(counts) <= most,
    `${total(counts)} calls where ${most} are the most:\n${described(counts)}`,
  );
}

/** Sends a request of the owner, or with other headers, and resolves with its status when the head of the response has come. */
function send(method: string, path: string, body?: unknown, caller = OWN): Promise<number> {
  const headers = { ...caller, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
  return new Promise((resolve, reject) => {
    const request = http.request(`${server.baseUrl}${path}`, { method, headers, agent }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    request.on('error', reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

test('docs/decisions/http.md names the present budgets of calls', () => {
  const text = readFileSync(join(PACKAGE_ROOT, 'docs/decisions/http.md'), 'utf8').replace(/\s+/g, ' ');
  assert.ok(text.includes(` ${MAX_CALLS_OF_A_GET} for a GET of a notebook`));
  assert.ok(text.includes(` ${MAX_CALLS_UNTIL_A_RUN_IS_ACCEPTED} for an execution until its 202`));
  assert.ok(text.includes(` ${MAX_CALLS_OF_AN_EDIT_OF_A_PAGE} for an edit of a page`));
  assert.ok(text.includes(` ${MAX_CALLS_OF_A_RUN} for a whole run`));
});

test('a GET of a notebook stays within its budget of calls', async (t) => {
  const notebook = await server.client.notebooks.create({});
  const get = () => send('GET', `/api/v3/notebooks/${notebook.id}`);
  for (let i = 0; i < 20; i++) assert.equal(await get(), 200);
  const counts = await countCalls(get, MAX_CALLS_OF_A_GET);
  t.diagnostic(`${total(counts)} calls of ${counts.size} functions`);
  assertWithin(counts, MAX_CALLS_OF_A_GET);
});

test('a change of a notebook by its last author stays within its budget of calls', async (t) => {
  const notebook = await server.client.notebooks.create({});
  let { updatedAt: expectedUpdatedAt } = notebook;
  const variables = { REGION: 'eu' };
  const patch = async () =>
    assert.equal(
      await send('PATCH', `/api/v3/notebooks/${notebook.id}`, { expectedUpdatedAt, variables }),
      200,
    );
  const read = async () => {
    ({ updatedAt: expectedUpdatedAt } = await server.client.notebooks.get(notebook.id));
  };
  for (let i = 0; i < 20; i++) {
    await patch();
    await read();
  }
  const counts = await countCalls(patch, MAX_CALLS_OF_A_PATCH, { after: read });
  t.diagnostic(`${total(counts)} calls of ${counts.size} functions`);
  assertWithin(counts, MAX_CALLS_OF_A_PATCH);
});

test('an execution stays within its budget of calls until it is accepted', async (t) => {
  const notebook = await openNotebook(server, { a: '1 + 1' });
  for (let i = 0; i < 10; i++) await notebook.run(['a']);
  const signal = kernelSignals();
  const path = `/api/v3/notebook-sessions/${notebook.id}/executions`;
  const execute = async () =>
    assert.equal(await send('POST', path, { type: 'cells', cells: [{ cellId: 'a' }] }), 202);
  const counts = await countCalls(execute, MAX_CALLS_UNTIL_A_RUN_IS_ACCEPTED, {
    before: () => signal('SIGSTOP'),
    async after() {
      signal('SIGCONT');
      await eventually('the run has ended', async () => (await notebook.record()).currentRunId === null);
    },
  });
  t.diagnostic(`${total(counts)} calls of ${counts.size} functions`);
  assertWithin(counts, MAX_CALLS_UNTIL_A_RUN_IS_ACCEPTED);
});

test('a whole run stays within its budget of calls until a follower has its last event', async (t) => {
  const notebook = await openNotebook(server, { a: '1 + 1' });
  await using events = await notebook.events();
  const path = `/api/v3/notebook-sessions/${notebook.id}/executions`;
  const run = async () => {
    const ended = events.next(({ type, data }) => type === 'run-status' && data.status === 'completed');
    assert.equal(await send('POST', path, { type: 'cells', cells: [{ cellId: 'a' }] }), 202);
    await ended;
  };
  for (let i = 0; i < 10; i++) await run();
  const counts = await countCalls(run, MAX_CALLS_OF_A_RUN);
  t.diagnostic(`${total(counts)} calls of ${counts.size} functions`);
  assertWithin(counts, MAX_CALLS_OF_A_RUN);
});

/** Returns the calls of an edit of the first cell, which a page makes in a notebook with these cells. */
async function callsOfAnEdit(codes: Codes, budget: number): Promise<CallCounts> {
  const notebook = await openNotebook(server, codes);
  await using page = await NotebookPageClient.open(server.client, server.baseUrl, notebook.id);
  await page.follow();
  const caller = { authorization: `Bearer ${page.token}`, 'marimo-session-id': page.pageId };
  const path = `${new URL(page.address).pathname}api/document/transaction`;
  const [cellId] = Object.keys(codes);
  let edits = 0;
  const edit = async () => {
    const changes = [{ type: 'set-code', cellId, code: `${++edits} + 1` }];
    assert.equal(await send('POST', path, { changes }, caller), 200);
  };
  for (let i = 0; i < 10; i++) await edit();
  const signal = kernelSignals();
  return await countCalls(edit, budget, {
    before: () => signal('SIGSTOP'),
    async after() {
      signal('SIGCONT');
      await callCode(server.client, notebook.id, '1'); // then the kernel has taken the edit
    },
  });
}

test('an edit of a page stays within its budget of calls', async (t) => {
  const counts = await callsOfAnEdit({ a: '1 + 1', b: 'x = 2' }, MAX_CALLS_OF_AN_EDIT_OF_A_PAGE);
  t.diagnostic(`${total(counts)} calls of ${counts.size} functions`);
  assertWithin(counts, MAX_CALLS_OF_AN_EDIT_OF_A_PAGE);
});

test('an edit of a page encodes, checks and compares no unchanged cell, even in a large notebook', async (t) => {
  for (const [cells, most] of BUDGETS_OF_AN_EDIT_BY_CELLS) {
    const codes = Object.fromEntries(Array.from({ length: cells }, (_, at) => [`c${at}`, `x${at} = 1`]));
    const counts = await callsOfAnEdit(codes, most);
    t.diagnostic(`${cells} cells: ${total(counts)} calls of ${counts.size} functions`);
    assertWithin(counts, most);
  }
});

test('a create of a notebook and of an environment stay within their budgets of calls', async (t) => {
  const cells = [{ cell_id: 'a', code: '1 + 1' }];
  const budgets = [
    ['/api/v3/notebooks', { serialization: { cells } }, MAX_CALLS_OF_A_CREATE],
    ['/api/v3/execution-environments', {}, MAX_CALLS_OF_AN_ENVIRONMENT],
  ] as const;
  for (const [path, body, budget] of budgets) {
    const create = async () => assert.equal(await send('POST', path, body), 201);
    for (let i = 0; i < 20; i++) await create();
    const counts = await countCalls(create, budget);
    t.diagnostic(`${path}: ${total(counts)} calls of ${counts.size} functions`);
    assertWithin(counts, budget);
  }
});

test('a code call and a run that is cancelled stay within their budgets of calls', async (t) => {
  const notebook = await openNotebook(server, { loop: 'while True:\n    pass' });
  const call = async () => void (await callCode(server.client, notebook.id, '1 + 1'));
  const cancel = async () => {
    const runId = await notebook.submit([]);
    await server.client.runs.cancel(runId);
    assert.equal((await server.client.waitForRun(runId)).status, 'cancelled');
  };
  const budgets = [
    ['a code call', call, MAX_CALLS_OF_A_CODE_CALL],
    ['a cancelled run', cancel, MAX_CALLS_OF_A_CANCELLED_RUN],
  ] as const;
  for (const [name, work, budget] of budgets) {
    for (let i = 0; i < 10; i++) await work();
    const counts = await countCalls(work, budget);
    t.diagnostic(`${name}: ${total(counts)} calls of ${counts.size} functions`);
    assertWithin(counts, budget);
  }
});
