/**
 * The pages that requests and runs write to the store, and how often they wait for the disk. A commit flushes twice: its pages, and
 * then the head that makes them count. Both numbers are the same on every machine, for a store of the same content.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { callCode } from '#test/support/code-call.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';
import {
  compileRecorder,
  readLog,
  recordedEnvironment,
  WHY_NOT_RECORDED,
} from '#test/support/store/write-log.ts';

const skip = process.env.CI === 'true' ? false : (WHY_NOT_RECORDED ?? false);
const PAGE_BYTES = 4096;
/** Pages are split in some attempts, and on a busy machine work that usually shares a commit does not. */
const MAX_ATTEMPTS = 100;

/** The cost of one piece of work. Each flush waits for the disk. */
interface Cost {
  readonly pages: number;
  readonly flushes: number;
}

test('creations, runs, calls and cancellations stay within their budgets of written pages and flushes', {
  skip,
}, async (t) => {
  const folder = temporaryDirectory(t);
  const log = join(folder, 'write.log');
  const { client } = await startChildServer(t, {
    TROUPE_WORKERS: '1',
    // The server runs in its data directory, so the folder of the store is a relative path.
    ...recordedEnvironment(compileRecorder(folder), 'store', log),
  });
  const cells = Object.entries({ one: '1 + 1', loop: 'while True:\n    pass' });
  const serialization = { cells: cells.map(([cell_id, code]) => ({ cell_id, code })) };
  // With many notebooks the trees of the store have several levels, as those of real stores.
  for (let n = 0; n < 400; n++) await client.notebooks.create({ serialization });
  const { id } = await client.notebooks.create({ serialization });
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId: id, environmentId });
  await client.notebookSessions.waitUntilReady(id);
  const submit = async (cellId: string) =>
    (await client.executions.submit(id, { type: 'cells', cells: [{ cellId }] })).runId;
  const run = async () => assert.equal((await client.waitForRun(await submit('one'))).status, 'completed');
  const cancel = async () => {
    const runId = await submit('loop');
    await client.runs.cancel(runId);
    assert.equal((await client.waitForRun(runId)).status, 'cancelled');
  };
  for (let n = 0; n < 20; n++) await run();
  await cancel();

  /** Returns the cost of the first attempt within the budget, or else of the cheapest one. */
  const costOf = async (work: () => Promise<unknown>, budget: Cost): Promise<Cost> => {
    const costs: Cost[] = [];
    while (costs.length < MAX_ATTEMPTS) {
      const from = readLog(log).length;
      await work();
      const entries = readLog(log).slice(from);
      const sizes = entries.flatMap((entry) => (entry.kind === 'write' ? [entry.data.length] : []));
      const cost: Cost = {
        pages: sizes.reduce((pages, bytes) => pages + Math.floor(bytes / PAGE_BYTES), 0),
        flushes: entries.filter(({ kind }) => kind === 'flush' || kind === 'written').length,
      };
      if (cost.pages <= budget.pages && cost.flushes <= budget.flushes) return cost;
      costs.push(cost);
    }
    return costs.sort((a, b) => a.flushes - b.flushes || a.pages - b.pages)[0]!;
  };
  const budgets: readonly (readonly [string, Cost, () => Promise<unknown>])[] = [
    ['a create', { pages: 7, flushes: 2 }, () => client.notebooks.create({ serialization })],
    ['an environment', { pages: 7, flushes: 2 }, () => client.executionEnvironments.create()],
    // One page is that of the index of runs by user. In the index by ends, the newest places are next to other keys that the end writes.
    ['a run', { pages: 19, flushes: 4 }, run],
    ['a code call', { pages: 0, flushes: 0 }, () => callCode(client, id, '1 + 1')],
    ['a cancelled run', { pages: 20, flushes: 4 }, cancel],
  ];
  for (const [name, budget, work] of budgets) {
    const { pages, flushes } = await costOf(work, budget);
    t.diagnostic(`${name}: ${pages} pages, ${flushes} flushes`);
    assert.ok(flushes <= budget.flushes, `${name}: ${flushes} flushes`);
    assert.ok(pages <= budget.pages, `${name}: ${pages} pages`);
  }
});
