import assert from 'node:assert/strict';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { callCode } from '#test/support/code-call.ts';
import type { EventLog } from '#test/support/event-log.ts';
import { openNotebook, printed, results, statuses } from '#test/support/notebook-fixture.ts';
import { descendants, eventually } from '#test/support/processes.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;
const { notebookSessions: sessions } = client;

/** The events of the session and its runs since the state was replayed, in order. */
function told({ events }: EventLog): string[] {
  const live = events.slice(events.findIndex(({ type }) => type === 'session.replayed'));
  return live.flatMap((event) => {
    if (event.type === 'session.status')
      return [[event.data.status, event.data.reason].filter(Boolean).join(' ')];
    if (event.type === 'run-status') return [`run ${event.data.status}`];
    return [];
  });
}

const DEATHS = {
  'exits by itself': ['import os\nos._exit(3)', 'kernel_exited', /code 3/],
  'is killed by a signal': [
    'import os, signal\nos.kill(os.getpid(), signal.SIGKILL)',
    'kernel_killed',
    /SIGKILL/,
  ],
  'crashes in native code': [
    'import os, signal\nsignal.signal(signal.SIGSEGV, signal.SIG_DFL)\nos.kill(os.getpid(), signal.SIGSEGV)',
    'kernel_killed',
    /SIGSEGV/,
  ],
} as const;

test('when the kernel dies or the session is closed, the run has the results of the cells that had ended before', async () => {
  const notebook = await openNotebook(server, {
    first: 'import os\nfirst = os.getpid()\nprint("here")',
    fatal: 'first and os._exit(3)',
    endless: 'print("endless", first)\nwhile first: pass',
  });
  const died = await notebook.run(['fatal']);
  assert.deepEqual(statuses(died), { first: 'success', fatal: 'interrupted' });
  assert.equal(printed(results(died)[0]!), 'here\n');
  await sessions.waitUntilReady(notebook.id);
  await using events = await notebook.events();
  const runId = await notebook.submit(['endless']);
  await events.until(({ type, data }) => type === 'console-output' && data.cellId === 'endless');
  await notebook.close();
  const closed = await client.runs.get(runId);
  assert.deepEqual(statuses(closed), { first: 'success', endless: 'interrupted' });
});

test("if the kernel dies during a check of new code, the execution is refused because of the session's new state", async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const fatal = `from marimo._lint.validate_graph import check_for_errors
check_for_errors.__code__ = (lambda *_: __import__('os')._exit(3)).__code__`;
  await callCode(client, notebook.id, fatal);
  const refused = notebook.submit({ type: 'cells', cells: [{ cellId: 'a', code: '2' }] });
  assert.equal(await refusalOf(refused), '409 session_not_ready');
  await sessions.waitUntilReady(notebook.id);
  assert.equal((await notebook.run(['a'])).status, 'completed');
});

test('if the kernel cannot check new code, the execution is accepted, and its run has the error', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const broken = `from marimo._lint.validate_graph import check_for_errors
check_for_errors.__code__ = (lambda *_: {}['nothing']).__code__`;
  await callCode(client, notebook.id, broken);
  const run = await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: '2' }] });
  assert.deepEqual([run.status, /KeyError/.test(run.error?.message ?? '')], ['failed', true]);
});

for (const [how, [code, cause, detail]] of Object.entries(DEATHS)) {
  test(`a kernel that ${how} fails its run with the cause, and is replaced`, async () => {
    const notebook = await openNotebook(server, { kept: 'kept = 7', a: code });
    await notebook.run(['kept']);
    await using events = await notebook.events();
    const run = await notebook.run(['a']);
    assert.deepEqual([run.status, run.error?.code], ['failed', cause]);
    assert.match(run.error?.message ?? '', detail);
    assert.deepEqual(statuses(run), { a: 'interrupted' });
    await events.until(({ type, data }) => type === 'session.status' && data.status === 'restoring');
    await sessions.waitUntilReady(notebook.id);
    await eventually('the subscriber heard all', () => told(events).at(-1) === 'ready');
    assert.deepEqual(
      told(events),
      ['busy', 'run running', 'run failed', `restoring ${cause}`, 'ready'].sort(byTelling(told(events))),
    );
    const { status, error, environmentId, cells } = await notebook.record();
    assert.deepEqual(
      { status, error, environmentId },
      { status: 'ready', error: null, environmentId: notebook.environmentId },
    );
    assert.ok(cells.every(({ stale }) => stale));
    assert.equal((await callCode(client, notebook.id, 'kept')).errors[0]?.type, 'NameError');
    assert.equal((await notebook.run(['kept'])).status, 'completed');
    await notebook.close();
  });
}

/** The order of the session's and the run's events of one transition is not promised. */
function byTelling(order: readonly string[]) {
  return (a: string, b: string) => order.indexOf(a) - order.indexOf(b);
}

test('a kernel that dies during a code call ends the call with the cause', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const result = await callCode(client, notebook.id, 'import os\nos._exit(4)');
  assert.deepEqual([result.success, result.errors[0]?.type], [false, 'kernel_exited']);
  assert.equal((await sessions.waitUntilReady(notebook.id)).status, 'ready');
  await notebook.close();
});

test('a kernel that dies between two runs is replaced, and no run is affected', async () => {
  const notebook = await openNotebook(server, {
    a: 'import os, threading\nthreading.Timer(0.05, os._exit, [5]).start()',
  });
  await using events = await notebook.events();
  const run = await notebook.run(['a']);
  await events.until(({ type, data }) => type === 'session.status' && data.reason === 'kernel_exited');
  assert.equal((await sessions.waitUntilReady(notebook.id)).status, 'ready');
  assert.deepEqual(await client.runs.get(run.id), run);
  await notebook.close();
});

test('running out of memory inside Python is an error of the cell, and the kernel survives', async (t) => {
  const small = await startServer(t, { TROUPE_KERNEL_MEMORY_MB: '1024' });
  const notebook = await openNotebook(small, { a: 'x = bytearray(8 * 2**30)', b: 'y = 1' });
  await notebook.run(['b']);
  const run = await notebook.run(['a']);
  assert.deepEqual([run.status, run.error?.code], ['failed', 'cell_failed']);
  assert.match(run.error?.message ?? '', /MemoryError/);
  assert.equal((await callCode(small.client, notebook.id, 'y')).success, true);
  await notebook.close();
});

test('the third early death fails the session, which gives the reason; a read after the pause restores the session', async () => {
  const notebook = await openNotebook(server, { a: 'import os\nos._exit(6)', b: '1' });
  await using events = await notebook.events();
  for (let death = 1; death <= 3; death++) {
    assert.equal((await notebook.run(['a'])).error?.code, 'kernel_exited');
    await sessions.waitUntilReady(notebook.id);
  }
  const failed = await notebook.record();
  const error = { code: 'kernel_exited', message: 'The kernel ended: its process exited with code 6.' };
  assert.deepEqual([failed.status, failed.error, failed.kernel], ['failed', error, null]);
  await events.until(({ type, data }) => type === 'session.status' && data.status === 'failed');
  assert.deepEqual(told(events).at(-1), 'failed kernel_exited');
  assert.equal(await refusalOf(notebook.submit(['b'])), '409 session_failed');
  assert.equal(await refusalOf(callCode(client, notebook.id, '1')), '409 session_failed');
  const { environmentId } = await client.executionEnvironments.create();
  const elsewhere = { notebookId: notebook.id, environmentId };
  assert.equal(await refusalOf(sessions.open(elsewhere)), '409 session_exists');
  assert.equal(
    (await client.executionEnvironments.get(notebook.environmentId)).notebookSessionId,
    notebook.id,
  );
  await eventually(
    'a look after the pause starts a kernel',
    async () => (await notebook.record()).status !== 'failed',
  );
  assert.equal((await sessions.waitUntilReady(notebook.id)).status, 'ready');
  assert.equal((await notebook.run(['b'])).status, 'completed');
  await notebook.close();
});

test('a failed session can be deleted, and its environment is vacant again', async () => {
  const notebook = await openNotebook(server, { a: 'import os\nos._exit(6)' });
  for (let death = 1; death <= 3; death++) {
    await notebook.run(['a']);
    await sessions.waitUntilReady(notebook.id);
  }
  const closed = await notebook.close();
  assert.deepEqual([closed.status, closed.error?.code], ['closed', 'kernel_exited']);
  const { environmentId } = notebook;
  assert.equal((await client.executionEnvironments.get(environmentId)).notebookSessionId, null);
  await sessions.open({ notebookId: notebook.id, environmentId });
  assert.equal((await sessions.waitUntilReady(notebook.id)).status, 'ready');
  await notebook.close();
});

test('a hanging kernel can still be closed', async (t) => {
  const child = await startChildServer(t);
  const notebook = await openNotebook(child, {
    a: 'import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)',
  });
  await using events = await notebook.events();
  const runId = await notebook.submit(['a']);
  await events.until(({ type, data }) => type === 'cell-op' && data.status === 'running');
  const below = descendants(child.pid).length;
  assert.equal((await notebook.close()).status, 'closed');
  assert.equal((await child.client.runs.get(runId)).status, 'cancelled');
  await eventually('its process is gone', () => descendants(child.pid).length < below);
});
