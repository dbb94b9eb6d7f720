import assert from 'node:assert/strict';
import test from 'node:test';
import type { RunId } from '#src/core/ids.ts';
import type { LiveNotebook } from '#src/notebook/live-notebook.ts';
import { runWork } from '#src/notebook/work/run-work.ts';
import type { RunEnd, RunRepository } from '#src/runs/run-repository.ts';
import type { Store } from '#storage/store.ts';

test('a run ends even if its output cannot be assembled, and the log has the reason', () => {
  const ends: RunEnd[] = [];
  const logged: unknown[] = [];
  const view = {
    get: () => {
      throw new RangeError('Invalid string length');
    },
  };
  const plan = runWork({
    runId: 'run_1' as RunId,
    trace: undefined,
    cellIds: ['a'],
    configured: [],
    cacheMode: 'default',
    skipsBroken: false,
    waitsForCommit: false,
    live: { workspaceId: 'ws_1', view } as unknown as LiveNotebook,
    runs: { finish: (_w, _r, end) => ends.push(end) } as Pick<RunRepository, 'finish'> as RunRepository,
    store: { isFull: false } as Store,
    hint: () => '',
    log: { error: (details) => logged.push(details) },
  });
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
