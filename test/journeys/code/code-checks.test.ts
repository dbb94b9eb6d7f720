/** The check of a request's new code by the kernel, before the run begins. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { NoticeBus } from '#src/runtime/actors/notice-bus.ts';
import { FORGE } from '#test/support/forged-frames.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

/** The notebook's signal handler blocks the main thread of the kernel outside of any run, and writes a file when it begins. */
const HOLDS_KERNEL = `
import signal, time
def hold(*_):
    open("held", "w").close()
    time.sleep(1000)
signal.signal(signal.SIGALRM, hold)
signal.setitimer(signal.ITIMER_REAL, 0.2)
`;

/** A notebook with a thread that creates and deletes a cell without pause. */
const FLICKERS = `${FORGE}
import threading, time
config = dict(disabled=False, hide_code=False, expand_output=False, column=None)
def tell(*changes):
    forge(frame(dict(op="notebook-document-transaction", transaction=dict(source="code-mode", changes=changes))))
def flicker():
    while True:
        tell(dict(type="create-cell", cellId="z", code="1", name="_", config=config, before=None, after=None))
        time.sleep(0.004)
        tell(dict(type="delete-cell", cellId="z"))
        time.sleep(0.001)
threading.Thread(target=flicker, daemon=True).start()
`;

test('a session is free again when its client leaves during the check of new code, even if the kernel does not answer', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', holder: HOLDS_KERNEL });
  await notebook.run(['holder']);
  await eventually('the kernel is held', async () => {
    const { items } = await client.files.list();
    return items.some(({ path }) => path === 'held');
  });
  const leave = new AbortController();
  const answer = fetch(`${server.baseUrl}/api/v3/notebook-sessions/${notebook.id}/executions`, {
    method: 'POST',
    signal: leave.signal,
    headers: {
      authorization: `Bearer ${server.owner.token}`,
      'service-workspace-id': server.owner.workspaceId,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ type: 'cells', cells: [{ cellId: 'a', code: 'x = 2' }] }),
  });
  await eventually('the code is checked', async () => (await notebook.record()).status === 'busy');
  leave.abort();
  await assert.rejects(answer, { name: 'AbortError' });
  await eventually('the session is free', async () => (await notebook.record()).status === 'ready');
  const run = await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: 'x = 3' }] });
  assert.equal(run.status, 'completed');
  await notebook.close();
});

test('a cell that is deleted while its new code is checked is an unknown cell', async () => {
  const notebook = await openNotebook(server, { flickers: FLICKERS });
  await notebook.run(['flickers']);
  const answers = new Set<string>();
  for (let n = 0; n < 60; n++) {
    const body = { type: 'cells', cells: [{ cellId: 'z', code: `${n}` }] };
    const path = `/api/v3/notebook-sessions/${notebook.id}/executions?wait=5`;
    const answer = await server.request('POST', path, { body });
    answers.add(`${answer.status} ${(answer.body as { readonly code?: string }).code ?? ''}`);
  }
  const expected = ['200 ', '400 unknown_cell'];
  assert.deepEqual(
    [...answers].filter((one) => !expected.includes(one)),
    [],
  );
  await notebook.close();
});

test("a refused request to close a session leaves nothing in the server's memory", async (t) => {
  let watchers = 0;
  const { watch } = NoticeBus.prototype;
  NoticeBus.prototype.watch = function (...args) {
    const stop = watch.apply(this, args);
    watchers++;
    return () => {
      watchers--;
      stop();
    };
  };
  t.after(() => {
    NoticeBus.prototype.watch = watch;
  });
  const notebook = await openNotebook(server, { a: '1' });
  await notebook.close();
  const path = `/api/v3/notebook-sessions/${notebook.id}`;
  for (let n = 0; n < 5; n++) assert.equal((await server.request('DELETE', path)).status, 409);
  assert.equal(watchers, 0);
});
