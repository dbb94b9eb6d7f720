import assert from 'node:assert/strict';
import test from 'node:test';
import type { RunId } from '#src/base/ids.ts';
import type { Kernel } from '#src/confined/processes/kernel/kernel.ts';
import type { LiveNotebook } from '#src/notebook/open/live-notebook.ts';
import { NotebookView } from '#src/notebook/open/view.ts';
import { cellWork } from '#src/notebook/work/cell-work.ts';
import { runWork } from '#src/notebook/work/run-work.ts';
import type { RunEnd } from '#src/runtime/runs/run-repository.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { testContext } from '#test/support/test-context.ts';

test('a run ends even if its output cannot be assembled, and the log has the reason', () => {
  const ends: RunEnd[] = [];
  const logged: unknown[] = [];
  let isTooLong = false;
  const view = {
    get: () => {
      if (isTooLong) throw new RangeError('Invalid string length');
    },
  };
  const context = testContext<RunPlaneContext>({
    runs: { finish: (_w: string, _r: string, end: RunEnd) => ends.push(end) },
    store: { isFull: false },
    log: { error: (details: unknown) => logged.push(details) },
  });
  const plan = runWork(context, {
    run: { runId: 'run_1' as RunId, trace: undefined },
    cellIds: ['a'],
    configured: [],
    cacheMode: 'default',
    skipsBroken: false,
    waitsForCommit: false,
    live: { workspaceId: 'ws_1', view } as unknown as LiveNotebook,
    hint: () => '',
  });
  isTooLong = true;
  plan.ended({ status: 'completed', failure: null });
  const [end] = ends;
  assert.equal(end?.status, 'completed');
  const { parts } = end.output as { readonly parts: readonly { readonly code: string }[] };
  assert.deepEqual(
    parts.map(({ code }) => code),
    ['output_lost'],
  );
  assert.equal(logged.length, 1);
});

test('a run and the work of an agent execute the code and the settings of the time at which they were accepted', () => {
  const view = new NotebookView(
    ['a', 'b', 'c'].map((cell_id) => ({ cell_id, code: `accepted ${cell_id}`, options: { disabled: true } })),
  );
  const live = { workspaceId: 'ws_1', view } as unknown as LiveNotebook;
  const context = testContext<RunPlaneContext>({
    runs: {},
    store: { isFull: false },
    log: { error: () => undefined },
  });
  const run = runWork(context, {
    run: { runId: 'run_1' as RunId, trace: undefined },
    cellIds: ['a', 'b'],
    configured: ['b', 'c'],
    cacheMode: 'default',
    skipsBroken: false,
    waitsForCommit: false,
    live,
    hint: () => '',
  });
  const work = cellWork({
    runId: 'run_2',
    trace: undefined,
    cellIds: ['a', 'b'],
    live,
    keep: () => undefined,
    resolve: () => undefined,
  });
  view.setCode(view.get('b')!, 'edited');
  view.setOptions(view.get('b')!, {});
  for (const cellId of ['a', 'c']) view.remove(cellId);
  const commands: unknown[] = [];
  const kernel: Partial<Kernel> = {
    configure: (configs) =>
      commands.push(Object.entries(configs).map(([id, config]) => [id, config.disabled])),
    execute: ({ cellIds, codes }) => commands.push([cellIds, codes]),
  };
  for (const step of [...run.steps, ...work.steps]) step(kernel as Kernel);
  const executed = [
    ['a', 'b'],
    ['accepted a', 'accepted b'],
  ];
  assert.deepEqual(commands, [
    [
      ['b', true],
      ['c', true],
    ],
    executed,
    executed,
  ]);
});
