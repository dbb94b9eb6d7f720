// own kernel host: it stops the host
// tier: whole, because it kills, fills and restarts servers of several processes
/** Sessions while the kernel host dies or hangs. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { descendants, eventually, gone, kernelHostOf } from '#test/support/processes.ts';

for (const victim of ['zygote', 'guardian'] as const) {
  test(`when the kernel host's ${victim} is killed, every session is restored`, async (t) => {
    const child = await startChildServer(t);
    const notebooks = await Promise.all(
      [1, 2, 3].map(() =>
        openNotebook(child, { a: 'print("begun", flush=True)\nimport time\ntime.sleep(1000)', b: '1' }),
      ),
    );
    const logs = await Promise.all(notebooks.map((notebook) => notebook.events()));
    const runId = await notebooks[0]!.submit(['a']);
    await logs[0]!.until(({ type }) => type === 'console-output');
    const before = descendants(kernelHostOf(child.pid).guardian);

    process.kill(kernelHostOf(child.pid)[victim], 'SIGKILL');
    const fresh = openNotebook(child, { a: '1' }); // in the middle of the work
    const run = await child.client.waitForRun(runId);
    assert.deepEqual([run.status, run.error?.code], ['failed', 'kernel_host_lost']);
    for (const events of logs) {
      await events.until(({ type, data }) => type === 'session.status' && data.reason === 'kernel_host_lost');
    }
    for (const notebook of [...notebooks, await fresh]) {
      assert.equal((await child.client.notebookSessions.waitUntilReady(notebook.id)).status, 'ready');
    }
    await gone(before);
    assert.equal((await notebooks[0]!.run(['b'])).status, 'completed');
    for (const events of logs) await events[Symbol.asyncDispose]();
  });
}

test('three deaths of the kernel host in a row delay sessions, but end no session', async (t) => {
  const child = await startChildServer(t);
  const notebook = await openNotebook(child, { a: '1' });
  const kernelOf = async () =>
    (await child.client.kernels()).items.find(({ sessionId }) => sessionId === notebook.id)?.pid;
  for (let round = 0; round < 3; round++) {
    const { zygote } = kernelHostOf(child.pid);
    const before = await kernelOf();
    process.kill(zygote, 'SIGKILL');
    await eventually('another host is up', () => {
      try {
        return kernelHostOf(child.pid).zygote !== zygote;
      } catch {
        return false;
      }
    });
    await eventually('the session is ready with another kernel', async () => {
      const [{ status }, kernel] = [await child.client.notebookSessions.get(notebook.id), await kernelOf()];
      return status === 'ready' && kernel !== undefined && kernel !== before;
    });
  }
  assert.equal((await notebook.run(['a'])).status, 'completed');
});

test('while the kernel host hangs, opening gets a response and a starting session can be closed', async (t) => {
  const child = await startChildServer(t);
  const { client: its } = child;
  const { zygote } = kernelHostOf(child.pid);
  process.kill(zygote, 'SIGSTOP');
  t.after(() => {
    try {
      process.kill(zygote, 'SIGCONT');
    } catch {
      // it has ended
    }
  });
  const [{ id: notebookId }, { environmentId }] = await Promise.all([
    its.notebooks.create({ serialization: { cells: [{ cell_id: 'a', code: '1' }] } }),
    its.executionEnvironments.create(),
  ]);
  const opened = await its.notebookSessions.open({ notebookId, environmentId });
  assert.equal(opened.status, 'starting');
  assert.equal((await its.notebookSessions.close(notebookId)).status, 'closed');
  process.kill(zygote, 'SIGCONT');
  await its.notebookSessions.open({ notebookId, environmentId });
  assert.equal((await its.notebookSessions.waitUntilReady(notebookId)).status, 'ready');
});

test('readyz reports a silent kernel host until the host responds again', async (t) => {
  const server = await startChildServer(t);
  const { zygote } = kernelHostOf(server.pid);
  const readiness = async () => {
    const response = await fetch(`${server.baseUrl}/readyz`);
    return { status: response.status, body: await response.json() };
  };
  process.kill(zygote, 'SIGSTOP');
  const found = await eventually('the server is not ready', async () => {
    const now = await readiness();
    return now.status !== 200 && now;
  });
  assert.deepEqual(found, {
    status: 503,
    body: { ready: false, reason: 'The kernel host does not respond.' },
  });
  process.kill(zygote, 'SIGCONT');
  await eventually('the server is ready', async () => (await readiness()).status === 200);
});
