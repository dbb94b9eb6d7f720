// tier: whole, because it simulates hours of the server's life
import assert from 'node:assert/strict';
import test from 'node:test';
import { runSimulation } from './run-simulation.ts';

test('in many long lives with crashes the server keeps what it has acknowledged', async () => {
  const { isSound, text } = await runSimulation('--seeds', '1001..1240', '--seconds', '20');
  assert.ok(isSound, text);
});

test('a server that is never killed keeps its promises, too', async () => {
  const { isSound, text } = await runSimulation('--seeds', '2001..2040', '--seconds', '20', '--calm');
  assert.ok(isSound, text);
});

test('a seed has one trace, however often it is simulated', async () => {
  const { isSound, text } = await runSimulation('--seeds', '1..4', '--seconds', '5', '--times', '25');
  assert.ok(isSound, text);
});

test('workers that are killed and replaced keep what they have acknowledged', async () => {
  const { isSound, text } = await runSimulation('--seeds', '1..106', '--seconds', '4', '--workers', '3');
  assert.ok(isSound, text);
});

test('a server of several processes has one trace in each seed, in this process and in another one', async () => {
  const options = ['--seeds', '1..3', '--seconds', '4', '--workers', '3'];
  const [first, second] = await Promise.all([
    runSimulation(...options, '--times', '4'),
    runSimulation('--seeds', '2..3', ...options.slice(2)),
  ]);
  assert.ok(first.isSound, first.text);
  for (const seed of [2, 3]) assert.equal(first.digests.get(seed), second.digests.get(seed));
});

/** Jobs alone, which fire often, and a server that is killed at these moments only. */
const JOBS = ['--users', '0', '--talkers', '0', '--schedulers', '1', '--hookers', '0', '--kills-at-jobs'];
/** Hooks alone, with the jobs of their user. */
const HOOKS = ['--users', '0', '--talkers', '0', '--schedulers', '0', '--hookers', '1', '--kills-at-hooks'];

test('of a thousand kills around the firings, beginnings and ends of jobs, none loses or doubles an instant', async () => {
  const { isSound, text } = await runSimulation(...JOBS, '--seeds', '1..30', '--seconds', '40');
  assert.ok(isSound, text);
  const [, kills] = /^(\d+) kills around the moments of jobs$/m.exec(text) ?? [];
  assert.ok(Number(kills) >= 900, text);
});

test('nor do kills around the moments of jobs of a server with workers', async () => {
  const { isSound, text } = await runSimulation(
    ...JOBS,
    '--seeds',
    '1..12',
    '--seconds',
    '10',
    '--workers',
    '3',
  );
  assert.ok(isSound, text);
});

test('of hundreds of kills around events, requests and answers of hooks, none loses, doubles or feigns an event', async () => {
  const { isSound, text } = await runSimulation(...HOOKS, '--seeds', '1..40', '--seconds', '20');
  assert.ok(isSound, text);
  const [, kills] = /^(\d+) kills around the moments of hooks$/m.exec(text) ?? [];
  assert.ok(Number(kills) >= 500, text);
});

test('nor do kills around the moments of hooks of a server with workers', async () => {
  const options = ['--seeds', '1..12', '--seconds', '10', '--workers', '3'];
  const { isSound, text } = await runSimulation(...HOOKS, ...options);
  assert.ok(isSound, text);
});
