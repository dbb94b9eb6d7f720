// tier: whole, because it kills, fills and restarts servers of several processes
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { type ChildServer, startChildServer } from '#test/support/child-server.ts';
import { callCode } from '#test/support/code-call.ts';
import { EventLog } from '#test/support/event-log.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { sendRaw } from '#test/support/raw-request.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { OWNER } from '#test/support/server-fixture.ts';

const COUNT = "open('ran', 'a').write('+')";
const ENDINGS = ['SIGTERM', 'SIGKILL'] as const;

function timesRun({ dataDir }: ChildServer): number {
  const file = join(dataDir, 'workspaces', OWNER.workspaceId, 'files', 'ran');
  return existsSync(file) ? readFileSync(file, 'utf8').length : 0;
}

/** A notebook whose cells ran. One cell has other code than at its creation. */
async function usedNotebook(server: ChildServer): Promise<OpenNotebook> {
  const notebook = await openNotebook(server, {
    a: `${COUNT}\nx = 1`,
    b: 'print("printed")\nx + 1',
    c: 'y = 3',
  });
  await notebook.run(['a', 'b']);
  await notebook.run({ type: 'cells', cells: [{ cellId: 'c', code: 'y = "newer"\ny' }] });
  return notebook;
}

/** A notebook with a run in flight. */
async function runningNotebook(server: ChildServer): Promise<{ notebook: OpenNotebook; runId: string }> {
  const notebook = await openNotebook(server, { a: 'import time\nprint("begun")\ntime.sleep(1000)' });
  await using events = await notebook.events();
  const runId = await notebook.submit(['a']);
  await events.until(({ type }) => type === 'console-output');
  return { notebook, runId };
}

async function restarted(server: ChildServer, signal: NodeJS.Signals): Promise<ChildServer> {
  const { code } = await server.end(signal);
  assert.equal(code, signal === 'SIGTERM' ? 0 : null);
  return server.again();
}

async function liveKinds({ client }: ChildServer): Promise<string[]> {
  // Environments of several workers are not in memory: the stored ones are listed.
  const { items } = await client.actors();
  return items.filter(({ presence }) => presence !== 'stored').map(({ kind }) => kind);
}

for (const signal of ENDINGS) {
  test(`after ${signal} an open session is unchanged, except for the variables of Python`, async (t) => {
    const before = await startChildServer(t);
    const notebook = await usedNotebook(before);
    const [saved, history] = await Promise.all([
      before.client.notebooks.get(notebook.id),
      before.client.executions.list(notebook.id),
    ]);
    const after = await restarted(before, signal);
    const { client } = after;
    assert.deepEqual(await liveKinds(after), [], 'start-up loads nothing');

    const record = await client.notebookSessions.get(notebook.id);
    assert.deepEqual(
      [record.sessionId, record.environmentId, record.mode, record.status, record.createdAt],
      [notebook.id, notebook.environmentId, 'edit', 'restoring', notebook.session.createdAt],
    );
    const { status, cells, error } = await client.notebookSessions.waitUntilReady(notebook.id);
    assert.deepEqual({ status, error }, { status: 'ready', error: null });
    assert.deepEqual(
      cells.map(({ cellId, status, stale }) => [cellId, status, stale]),
      ['a', 'b', 'c'].map((cellId) => [cellId, 'stale', true]),
    );
    assert.deepEqual(await client.notebooks.get(notebook.id), saved);
    assert.deepEqual(await client.executions.list(notebook.id), history);
    const environment = await client.executionEnvironments.get(notebook.environmentId);
    assert.equal(environment.notebookSessionId, notebook.id);
    assert.equal(timesRun(after), 1, 'nothing ran again');

    const memory = await callCode(after.client, notebook.id, 'x');
    assert.deepEqual([memory.success, memory.errors[0]?.type], [false, 'NameError']);
    const [last] = history.items.slice(-1);
    assert.ok((await client.waitForRun(await submit(after, notebook.id, 'b'))).id > last!.id);
    assert.equal(timesRun(after), 2, 'a stale cell runs because another needs it');
  });

  test(`after ${signal} a subscriber gets the order, the code and the last outputs, marked as stale`, async (t) => {
    const before = await startChildServer(t);
    const notebook = await usedNotebook(before);
    const after = await restarted(before, signal);
    await using events = await EventLog.open(after.client, notebook.id);
    const [registered] = events.dataOf('cells-registered');
    assert.deepEqual(
      [registered?.order, registered?.cells.map(({ code }) => code).at(-1)],
      [['a', 'b', 'c'], 'y = "newer"\ny'],
    );
    const shown = Object.fromEntries(
      events.dataOf('cell-op').map(({ cellId, stale, output }) => {
        const printed = events.printed(cellId);
        return [cellId, { stale, data: String(output?.data ?? ''), printed }];
      }),
    );
    assert.deepEqual(shown.a, { stale: true, data: '', printed: '' });
    assert.deepEqual([shown.b?.stale, shown.b?.printed], [true, 'printed\n']);
    assert.match(shown.b?.data ?? '', />2</);
    assert.match(shown.c?.data ?? '', /newer/);
    const [latest] = events.dataOf('run-status');
    assert.equal(latest?.status, 'completed');
    await events.status('ready');
  });

  test(`after ${signal} a command restores an open session and waits for its kernel`, async (t) => {
    const before = await startChildServer(t);
    const [one, two] = await Promise.all([usedNotebook(before), usedNotebook(before)]);
    const after = await restarted(before, signal);
    assert.equal((await after.client.waitForRun(await submit(after, one!.id, 'b'))).status, 'completed');
    assert.equal((await callCode(after.client, two!.id, '1')).success, true);
  });

  test(`after ${signal} a closed session is still closed and its history can be read`, async (t) => {
    const before = await startChildServer(t);
    const notebook = await usedNotebook(before);
    const closed = await notebook.close();
    const history = await before.client.executions.list(notebook.id);
    const after = await restarted(before, signal);
    const record = await after.client.notebookSessions.get(notebook.id);
    assert.deepEqual({ ...record, cells: [] }, { ...closed, cells: [] });
    assert.deepEqual(await after.client.executions.list(notebook.id), history);
    assert.equal(await refusalOf(submit(after, notebook.id, 'b')), '409 session_closed');
    assert.equal(await refusalOf(after.client.notebookSessions.close(notebook.id)), '409 session_closed');
    const events = `/api/v3/notebook-sessions/${notebook.id}/events`;
    const { status } = await sendRaw(after.baseUrl, 'GET', events, OWNER, {});
    assert.equal(status, 204);
  });

  test(`after ${signal} an open session can be closed before it is restored`, async (t) => {
    const before = await startChildServer(t);
    const notebook = await usedNotebook(before);
    const after = await restarted(before, signal);
    assert.equal((await after.client.notebookSessions.close(notebook.id)).status, 'closed');
    const environment = await after.client.executionEnvironments.get(notebook.environmentId);
    assert.equal(environment.notebookSessionId, null);
  });
}

test('a run that was interrupted by kill -9 stays running and stale until it is cancelled', async (t) => {
  const before = await startChildServer(t);
  const { notebook, runId } = await runningNotebook(before);
  const after = await restarted(before, 'SIGKILL');
  const { client } = after;
  const left = await client.runs.get(runId);
  assert.deepEqual([left.status, left.stale, left.error], ['running', true, null]);

  await using events = await EventLog.open(client, notebook.id);
  assert.deepEqual(events.dataOf('run-status'), [
    { runId, status: 'running', createdBy: 'owner', stale: true },
  ]);
  await events.status('ready');
  const session = await client.notebookSessions.get(notebook.id);
  assert.deepEqual([session.status, session.currentRunId], ['ready', null]);
  assert.deepEqual(await client.runs.get(runId), left, 'that the session is back does not change it');

  assert.deepEqual(await client.runs.cancel(runId), { runId, status: 'cancelling' });
  await events.until(({ type, data }) => type === 'run-status' && data.status === 'cancelled');
  const { status, stale, finishedAt } = await client.runs.get(runId);
  assert.deepEqual([status, stale, typeof finishedAt], ['cancelled', undefined, 'string']);
  assert.equal(await refusalOf(client.runs.cancel(runId)), '409 run_finished');
});

test('a stale run can be cancelled while its session is not open, and stays cancelled after another crash', async (t) => {
  const before = await startChildServer(t);
  const { runId } = await runningNotebook(before);
  const between = await restarted(before, 'SIGKILL');
  await between.client.runs.cancel(runId);
  assert.deepEqual(
    (await liveKinds(between)).filter((kind) => kind !== 'run'),
    [],
  );
  const after = await restarted(between, 'SIGKILL');
  const { status, stale } = await after.client.runs.get(runId);
  assert.deepEqual([status, stale], ['cancelled', undefined]);
});

test('a run that a drain ended has failed, and its session accepts the next run', async (t) => {
  const before = await startChildServer(t);
  const { notebook, runId } = await runningNotebook(before);
  const after = await restarted(before, 'SIGTERM');
  const { status, stale, error, finishedAt } = await after.client.runs.get(runId);
  assert.deepEqual(
    [status, stale, error?.code, typeof finishedAt],
    ['failed', undefined, 'server_stopped', 'string'],
  );
  assert.equal((await after.client.notebookSessions.waitUntilReady(notebook.id)).status, 'ready');
  const next = await after.client.executions.submit(notebook.id, {
    type: 'cells',
    cells: [{ cellId: 'a', code: 'print("again")' }],
  });
  assert.equal((await after.client.waitForRun(next.runId)).status, 'completed');
});

test('five crashes in a row change no saved data', async (t: TestContext) => {
  let server = await startChildServer(t);
  const notebook = await usedNotebook(server);
  const saved = await server.client.notebooks.get(notebook.id);
  const { items } = await server.client.executions.list(notebook.id);
  for (let round = 0; round < 5; round++) {
    server = await restarted(server, 'SIGKILL');
    // In every second round, the crash happens while the session is half restored.
    if (round % 2 === 0) await server.client.notebookSessions.get(notebook.id);
  }
  assert.deepEqual(await server.client.notebooks.get(notebook.id), saved);
  assert.deepEqual((await server.client.executions.list(notebook.id)).items, items);
  assert.equal((await server.client.notebookSessions.waitUntilReady(notebook.id)).status, 'ready');
  assert.equal(timesRun(server), 1);
});

async function submit({ client }: ChildServer, sessionId: string, cellId: string): Promise<string> {
  const { runId } = await client.executions.submit(sessionId, { type: 'cells', cells: [{ cellId }] });
  return runId;
}
