// tier: test, because each kind of server has to load its modules
import assert from 'node:assert/strict';
import test from 'node:test';
import { runSimulation } from '../run-simulation.ts';
import { SCENARIOS } from './list.ts';

const SEEDS = '1..3';

/** By the number of workers. */
const runs = new Map<number, ReturnType<typeof runSimulation>>();

/** Resolves when all scenarios of a server with so many workers have been performed. */
function performed(workers: number): ReturnType<typeof runSimulation> {
  const options = ['--scenario', 'all', '--seeds', SEEDS, '--workers', String(workers)];
  const run = runs.get(workers) ?? runSimulation(...options);
  runs.set(workers, run);
  return run;
}

for (const { name, rule, workers = 1 } of SCENARIOS) {
  test(rule, async () => {
    const { text } = await performed(workers);
    assert.ok(text.includes(`scenario ${name}: kept\n`), text);
  });
}
