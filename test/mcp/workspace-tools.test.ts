/** The tools of MCP, called in this process over the API of a real server. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { shortened, type ToolOutcome } from '#src/agent/tools/tool.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import { createClient } from '#src/contract/client/client.ts';
import { Connection } from '#src/contract/client/connection.ts';
import { ClientNotebook } from '#src/mcp/client-notebook.ts';
import { hookTools } from '#src/mcp/hook-tools.ts';
import { jobTools } from '#src/mcp/job-tools.ts';
import type { McpCall } from '#src/mcp/mcp-call.ts';
import { NotebookLines } from '#src/mcp/notebook-lines.ts';
import { TARGET, workspaceTools } from '#src/mcp/workspace-tools.ts';
import { leavingFetch, MOMENTS } from '#test/support/leaving-fetch.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventuallyAsBefore, openThings } from '#test/support/open-things.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { hookReceiver, TAKEN } from '#test/support/stand-ins/hook-receiver.ts';

const server = await startServer(test);
const access = { baseUrl: server.baseUrl, accessToken: OWNER.token, workspaceId: OWNER.workspaceId };

/** Returns a call with this input. */
function callWith(
  input: Readonly<Record<string, unknown>>,
  { send = fetch, signal = new AbortController().signal } = {},
): McpCall {
  return {
    client: createClient({ ...access, fetch: send }),
    connection: new Connection({ ...access, fetch: send }),
    principal: { workspaceId: OWNER.workspaceId } as Principal,
    callId: 'call',
    trace: undefined,
    signal,
    notebookId: typeof input.notebookId === 'string' ? input.notebookId : '',
    timeoutS: typeof input.timeoutS === 'number' ? input.timeoutS : 60,
    wantsProgress: false,
    report: () => {},
    links: [],
  };
}

/** Calls a tool. */
function callTool(name: string, input: Readonly<Record<string, unknown>>, caller = {}) {
  const tools = [...workspaceTools(new NotebookLines()), ...jobTools(TARGET.notebookId), ...hookTools()];
  const tool = tools.find((one) => one.name === name);
  return tool!.run(input, callWith(input, caller));
}

test('a cancelled open_notebook leaves no notebook and no session', async () => {
  const before = await openThings(server.client);
  for (let at = 1; at <= 5; at++)
    for (const moment of MOMENTS) {
      const leaving = leavingFetch();
      leaving.arm(at, moment);
      const { status } = await callTool('open_notebook', { title: 'Left' }, leaving);
      assert.equal(status, 'cancelled', `left ${moment} request ${at}`);
      await eventuallyAsBefore(server.client, before, `left ${moment} request ${at}`);
    }
});

test('open_notebook returns a busy notebook at once', async () => {
  const notebook = await openNotebook(server, { endless: 'while True: pass' });
  const { runId } = await server.client.executions.submit(notebook.id, { type: 'all' });
  const { data } = await callTool('open_notebook', { notebookId: notebook.id });
  assert.equal(data?.status, 'busy');
  await server.client.runs.cancel(runId);
});

test('run_python ends at its time limit while other work keeps the notebook busy, and a later waiting call ends at its limit, too', async () => {
  const notebook = await openNotebook(server, { endless: 'while True: pass' });
  const { runId } = await server.client.executions.submit(notebook.id, { type: 'all' });
  const lines = new NotebookLines();
  const input = { notebookId: notebook.id, timeoutS: 1 };
  const results = await Promise.all(
    [input, input].map((one) => new ClientNotebook(callWith(one), lines).runPython('1 + 1')),
  );
  assert.deepEqual(
    results.map(({ isTimedOut, errors }) => [isTimedOut, errors[0]?.type]),
    [
      [true, 'timed_out'],
      [true, 'timed_out'],
    ],
  );
  assert.equal((await server.client.runs.get(runId)).status, 'running');
  await server.client.runs.cancel(runId);
});

test('read_file returns each piece of a long text with the offset of the next piece', async () => {
  const content = 'ä line of text\n'.repeat(4_000);
  await server.client.files.put('long.txt', Buffer.from(content));
  let read = '';
  for (let offset: unknown = 0; offset !== null; ) {
    const { text, data } = await callTool('read_file', { path: 'long.txt', offset });
    const shown = shortened({ status: 'completed', text }).text;
    assert.ok(shown.startsWith(String(data?.text)), 'nothing of the piece is left out');
    read += data?.text;
    offset = data?.nextOffset;
  }
  assert.equal(read, content);
});

test('some cells of a large notebook are read with their printed text, and the other cells are not parsed at once', async (t) => {
  const large = `# ${'x'.repeat(3_000_000)}`;
  const notebook = await openNotebook(server, { a: 'print("seen")', large, b: '1' });
  await notebook.run(['a', 'b']);
  const own = new ClientNotebook(callWith({ notebookId: notebook.id }), new NotebookLines());
  let longest = 0;
  const parse = JSON.parse;
  t.mock.method(JSON, 'parse', (text: string) => {
    longest = Math.max(longest, text.length);
    return parse(text) as unknown;
  });
  assert.deepEqual(await own.cellIds(), ['a', 'large', 'b']);
  const cells = await own.cells(['b', 'a', 'missing']);
  t.mock.restoreAll();
  assert.ok(longest < 512 * 1024, `${longest} characters were parsed at once`);
  assert.deepEqual(
    cells.map(({ cellId, code, status, console }) => [cellId, code, status, console.map(({ data }) => data)]),
    [
      ['a', 'print("seen")', 'idle', ['seen\n']],
      ['b', '1', 'idle', []],
    ],
  );
  const all = await own.cells();
  assert.deepEqual(
    all.map(({ cellId, code }) => [cellId, code.length]),
    [
      ['a', 13],
      ['large', large.length],
      ['b', 1],
    ],
  );
});

test('the cells of a closed notebook can be read after the notebook is opened', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await server.client.notebookSessions.close(notebook.id);
  const own = new ClientNotebook(callWith({ notebookId: notebook.id }), new NotebookLines());
  assert.deepEqual(await own.cellIds(), ['a']);
  await server.client.notebookSessions.close(notebook.id);
});

test('jobs are made, fired, paused, resumed and listed, and their history says how occurrences ended', async () => {
  const serialization = { cells: [{ cell_id: 'a', code: '1 / 0' }] };
  const { id: notebookId } = await server.client.notebooks.create({ serialization });
  const input = { notebookId, cron: '0 7 1 1 *', timeZone: 'Europe/Berlin', name: 'Yearly' };
  const made = await callTool('create_job', input);
  const { jobId, next } = dataOf<{ job: { jobId: string; next: readonly string[] } }>(made).job;
  assert.equal(next.length, 5);
  assert.match(made.text, new RegExp(`^${jobId} Yearly, 0 7 1 1 \\* \\(Europe/Berlin\\), waiting, next `));
  assert.match((await callTool('pause_job', { jobId })).text, /, paused$/);
  const fired = await callTool('fire_job', { jobId });
  assert.match(fired.text, / due$/);
  const history = await eventually('the occurrence is over', async () => {
    const read = await callTool('job_history', { jobId });
    const [last] = dataOf<{ occurrences: { status: string; reason: { code: string } }[] }>(read).occurrences;
    return last?.status === 'failed' ? { ...read, last } : undefined;
  });
  assert.equal(history.last.reason.code, 'cell_failed');
  assert.match(history.text, / failed run_\w+: .*ZeroDivisionError/);
  assert.match((await callTool('resume_job', { jobId })).text, /, waiting, next /);
  const listed = await callTool('list_jobs', { notebookId });
  assert.deepEqual(jobIdsOf(listed), [jobId]);
  await server.client.jobs.delete(jobId);
});

test('a job needs exactly one schedule, and lists of jobs and occurrences have pages', async () => {
  const { id: notebookId } = await server.client.notebooks.create({});
  for (const schedule of [{}, { cron: '@daily', everyS: 60 }])
    assert.deepEqual(await callTool('create_job', { notebookId, ...schedule }), {
      status: 'failed',
      text: 'Give exactly one of cron, everyS and at.',
    });
  const ids: string[] = [];
  for (let i = 0; i < 2; i++) {
    const made = await callTool('create_job', { notebookId, everyS: 3_600 });
    ids.unshift(dataOf<{ job: { jobId: string } }>(made).job.jobId);
  }
  const first = await callTool('list_jobs', { notebookId, limit: 1 });
  const second = await callTool('list_jobs', { notebookId, limit: 1, after: first.data?.nextCursor });
  assert.deepEqual([first, second].flatMap(jobIdsOf), ids);
  assert.match(first.text, /\n\[more: after /);
  for (const id of ids) await server.client.jobs.delete(id);
});

test('an agent finds out why a hook has told nobody, and sends again, without seeing a secret', async (t) => {
  let answer = 410;
  const receiver = await hookReceiver(t, (response) =>
    response.writeHead(answer).end('no /hook?from=troupe'),
  );
  const { hooks } = server.client;
  const { id: hookId, secret } = await hooks.create({
    url: receiver.url,
    events: ['run.failed'],
    name: 'Chat',
  });
  const sent: ToolOutcome[] = [];
  const call = async (name: string, input: Readonly<Record<string, unknown>> = {}) => {
    const outcome = await callTool(name, input);
    sent.push(outcome);
    return outcome;
  };
  const last = (status: string) =>
    eventually(`the delivery is ${status}`, async () => {
      const read = await call('hook_deliveries', { hookId });
      const [delivery] = dataOf<{ deliveries: { deliveryId: string; status: string }[] }>(read).deliveries;
      return delivery?.status === status ? { ...read, delivery } : undefined;
    });
  assert.match((await call('hook_deliveries', { hookId })).text, /^The hook has sent nothing yet\.$/);
  assert.match((await call('test_hook', { hookId })).text, / hook\.test pending, attempts: 0$/);
  const { delivery, text } = await last('dead');
  assert.match(text, / dead, attempts: 1: The receiver answered 410 Gone/);
  const origin = new URL(receiver.url).origin;
  const line = `${hookId} Chat, run.failed to ${origin}, paused: The receiver answered 410 Gone`;
  assert.ok((await call('list_hooks')).text.startsWith(line));
  answer = 204;
  assert.match((await call('resume_hook', { hookId })).text, /, idle$/);
  const again = await call('replay_delivery', { hookId, deliveryId: delivery.deliveryId });
  assert.match(again.text, / pending, /);
  await last('delivered');
  const seen = JSON.stringify(sent);
  for (const hidden of [secret, '/hook?from=troupe', '?from=']) assert.ok(!seen.includes(hidden), hidden);
  await hooks.delete(hookId);
});

test('lists of hooks and deliveries have pages', async (t) => {
  const receiver = await hookReceiver(t, TAKEN);
  const { hooks } = server.client;
  const create = async () => (await hooks.create({ url: receiver.url, events: ['run.failed'] })).id;
  const ids = [await create(), await create()];
  const tests = [await hooks.test(ids[0]!), await hooks.test(ids[0]!)].map(({ id }) => id);
  for (const [name, input, key, expected] of [
    ['list_hooks', {}, 'hookId', ids],
    ['hook_deliveries', { hookId: ids[0] }, 'deliveryId', tests],
  ] as const) {
    const first = await callTool(name, { ...input, limit: 1 });
    const second = await callTool(name, { ...input, limit: 1, after: first.data?.nextCursor });
    assert.match(first.text, /\n\[more: after /);
    const found = [first, second].flatMap(({ data }) => Object.values(data ?? {}).flat());
    const listed = found.flatMap((one) => (one as Record<string, unknown> | null)?.[key] ?? []);
    assert.deepEqual(listed, expected.toReversed());
  }
  for (const id of ids) await hooks.delete(id);
});

function dataOf<T>({ data }: ToolOutcome): T {
  assert.ok(data);
  return data as T;
}

function jobIdsOf(outcome: ToolOutcome): string[] {
  return dataOf<{ jobs: { jobId: string }[] }>(outcome).jobs.map(({ jobId }) => jobId);
}
