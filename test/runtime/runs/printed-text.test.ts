import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { RunId, SessionId, WorkspaceId } from '#src/base/ids.ts';
import { PrintedWatch } from '#src/notebook/work/printed-watch.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { type PrintedText, PrintedTexts } from '#src/runtime/runs/printed-text.ts';
import { RunDeletion } from '#src/runtime/runs/run-deletion.ts';
import { RunRepository } from '#src/runtime/runs/run-repository.ts';
import { printedTexts } from '#storage/records/runs.ts';
import { Removals } from '#storage/removals.ts';
import type { Store } from '#storage/store.ts';
import { cellOp, phase, stdout } from '#test/notebook/kernel-messages.ts';
import { viewOf } from '#test/notebook/work/recorded-run.ts';
import { rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const SESSION = 'nb_1' as SessionId;
const RUN = { workspaceId: WORKSPACE, sessionId: SESSION, kind: 'notebook' } as const;

function textOf(cellId: string, data: string, status: PrintedText['status'] = 'success'): PrintedText {
  const console = [{ channel: 'stdout', mimetype: 'text/plain', data }];
  return { cellId, status, durationMs: 1, console, omitted: 0 };
}

/** Returns the runs of a process that uses the store. */
function openRuns(t: TestContext, store: Store): RunRepository {
  const actors = new ActorRuntime(store, rememberingLog().log);
  t.after(() => actors.stopAll());
  return new RunRepository(store, actors);
}

function storedCells(store: Store): string[] {
  return [...store.listKeys(printedTexts, WORKSPACE, [], 100)].map(([, cellId = '']) => cellId);
}

/** Begins a run that has printed, in a process that is gone. Returns the runs of the next process. */
async function leaveBehind(t: TestContext, input: unknown = { type: 'all' }) {
  const { store } = await temporaryStore(t);
  const before = openRuns(t, store);
  const { runId } = before.begin({ ...RUN, input });
  before.printed.put(WORKSPACE, runId, [textOf('z', 'first\n'), textOf('a', 'second\n')]);
  await store.durable();
  return { store, runId, runs: openRuns(t, store) };
}

const shown = (runs: RunRepository, runId: RunId) =>
  JSON.parse(Buffer.from(runs.reader.json(WORKSPACE, runId)).toString());

test('a stale run shows its cells in the order in which they printed', async (t) => {
  for (const input of [
    { type: 'all' },
    { type: 'cells', cells: [{ cellId: 'a', code: 'x'.repeat(300_000) }] },
  ]) {
    const { runs, runId } = await leaveBehind(t, input);
    const { output, stale, ...run } = shown(runs, runId);
    assert.deepEqual([run.status, stale, run.input], ['running', true, input]);
    assert.deepEqual(
      output.parts.map(({ type, cellId, console }: Record<string, unknown>) => [type, cellId, console]),
      [
        ['cell-result', 'z', textOf('z', 'first\n').console],
        ['cell-result', 'a', textOf('a', 'second\n').console],
        ['warning', undefined, undefined],
      ],
    );
  }
});

test('the end of a run, its cancellation and its deletion remove its stored text', async (t) => {
  const { store } = await temporaryStore(t);
  const runs = openRuns(t, store);
  const { runId } = runs.begin({ ...RUN, input: {} });
  runs.printed.put(WORKSPACE, runId, [textOf('a', 'text')]);
  await store.durable();
  assert.deepEqual(storedCells(store), ['a']);
  const output = { stored: true, parts: [] };
  runs.finish(WORKSPACE, runId, { status: 'completed', error: null, output, assets: new Map() });
  await store.durable();
  assert.deepEqual([storedCells(store), shown(runs, runId).output], [[], output]);

  const cancelled = await leaveBehind(t);
  cancelled.runs.cancel(WORKSPACE, cancelled.runId, () => assert.fail('there is nothing to stop'));
  await cancelled.store.durable();
  assert.deepEqual(storedCells(cancelled.store), []);
  assert.equal(shown(cancelled.runs, cancelled.runId).output.parts.length, 3);

  const deleted = await leaveBehind(t);
  const deletion = (of: typeof deleted) =>
    new RunDeletion(of.store, of.runs, new Removals(of.store, (error) => assert.fail(String(error))));
  deletion(deleted).deleteEnded(WORKSPACE, [deleted.runId]);
  await deleted.store.durable();
  assert.deepEqual(storedCells(deleted.store), []);

  const trimmed = await leaveBehind(t);
  deletion(trimmed).deleteOutputs(WORKSPACE, [trimmed.runId]);
  await trimmed.store.durable();
  assert.deepEqual([storedCells(trimmed.store), shown(trimmed.runs, trimmed.runId).output], [[], null]);
});

test('when the cells of a run have printed too much, the text of the first cells is left out with a warning', async (t) => {
  const { store } = await temporaryStore(t);
  const texts = new PrintedTexts(store, 10);
  const runId = 'run_1' as RunId;
  const put = async (...all: PrintedText[]) => {
    texts.put(WORKSPACE, runId, all);
    await store.durable();
    const parts = texts.outputOf(WORKSPACE, runId)?.parts ?? [];
    return parts.flatMap((part) => {
      if (part.type === 'cell-result') return part.console.map(({ data }) => String(data)).join('');
      return part.type === 'warning' && part.code === 'console_truncated' ? part.message : [];
    });
  };
  assert.deepEqual(await put(textOf('a', '12345'), textOf('b', '67890')), ['12345', '67890'], 'at the limit');
  const left = 'printed 5 more characters between the beginning and the end kept here.';
  assert.deepEqual(await put(textOf('c', 'x')), ['', '67890', 'x', `The cell a ${left}`], 'past it');
  assert.deepEqual(await put(textOf('c', 'xxxxxx')), [
    '',
    '',
    'xxxxxx',
    `The cell a ${left}`,
    `The cell b ${left}`,
  ]);
});

test('text is stored a second after it was printed, and a run that ends earlier stores no text before its end', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const saved: (readonly string[])[] = [];
  const view = viewOf();
  const watch = new PrintedWatch((cellIds) => saved.push(cellIds));
  const print = (cellId: string) => watch.follow(cellOp(cellId, { console: [stdout('text')] }), view);
  watch.follow(phase('a', 'running'), view);
  watch.follow(cellOp('a', { console: [] }), view);
  t.mock.timers.tick(5000);
  assert.deepEqual(saved, [], 'nothing was printed');
  print('a');
  print('b');
  print('a');
  print('unknown');
  t.mock.timers.tick(999);
  assert.deepEqual(saved, []);
  t.mock.timers.tick(1);
  assert.deepEqual(saved, [['b', 'a']]);
  t.mock.timers.tick(5000);
  assert.equal(saved.length, 1, 'nothing new');
  watch.follow(phase('b', 'completed'), view);
  watch.follow(phase('c', 'completed'), view);
  t.mock.timers.tick(1000);
  assert.deepEqual(saved.slice(1), [['b']], 'its end is new, and c has printed nothing');
  print('a');
  watch[Symbol.dispose]();
  t.mock.timers.tick(5000);
  assert.equal(saved.length, 2);
});
