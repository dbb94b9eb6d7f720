// tier: test, because it simulates some forty lives, with processes of their own
/** The output of a simulation: one trace of a seed, workers included, and the report of a fault. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { runSimulation } from './run-simulation.ts';

/** A seed whose disk is full for a while, which the log says. */
const FULL = 8;

test('one seed has one trace, in this process and in another one', async () => {
  const seeds = `${FULL - 1}..${FULL}`;
  const { isSound, text, digests } = await runSimulation(
    ...['--seeds', seeds, '--seconds', '2', '--times', '2', '--again-with', process.execPath],
  );
  assert.ok(isSound, text);
  assert.match(text, /^2 of 2 seeds have one digest$/m);
  assert.notEqual(digests.get(FULL - 1), digests.get(FULL));
});

test('workers below a primary keep what they have acknowledged, and a seed of them has one trace', async () => {
  const { isSound, text } = await runSimulation(
    '--seeds',
    '3..5',
    '--seconds',
    '1',
    '--workers',
    '2',
    '--times',
    '2',
  );
  assert.ok(isSound, text);
});

test('a planted fault is found, and told in no more than sixty lines with the command that repeats it', async () => {
  const { isSound, text } = await runSimulation(
    '--seeds',
    '1..60',
    '--seconds',
    '10',
    '--mutant',
    'acknowledged-before-flush',
  );
  assert.equal(isSound, false, text);
  const report = text.slice(text.search(/^seed \d+ has \d+ problems:$/m));
  const lines = report.slice(0, report.indexOf('Again: ')).split('\n');
  assert.ok(lines.length <= 60, report);
  assert.match(report, /^Again: npm run simulate -- --seed \d+/m);
});
