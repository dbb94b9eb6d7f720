// tier: whole, because it keeps a server busy
/** A short soak, so that the long one keeps working, and the arithmetic of its slopes. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { LIMITS } from './sample.ts';
import { slopesOf } from './slopes.ts';
import { soak } from './soak.ts';

const DAY_MS = 86_400_000;
const LIMIT = { value: { perDay: 10, noise: 2 } };
const samplesOf = (values: readonly number[], stepMs: number) =>
  values.map((value, i) => ({ atMs: i * stepMs, values: { value } }));

test('growth above its limit fails, and growth at its limit does not', () => {
  const growing = (perDay: number) =>
    samplesOf(
      Array.from({ length: 30 }, (_, i) => i * perDay),
      DAY_MS,
    );
  assert.deepEqual(
    [10, 10.1].map((perDay) => slopesOf(growing(perDay), LIMIT)[0]?.isTooSteep),
    [false, true],
  );
});

test('growth that ends, peaks, and growth below the noise do not fail', () => {
  const minute = 60_000;
  const warming = Array.from({ length: 30 }, (_, i) => Math.min(i, 10) * 100);
  const peaks = Array.from({ length: 30 }, (_, i) => (i % 5 === 0 ? 1000 : 5));
  const noise = Array.from({ length: 30 }, (_, i) => (i > 20 ? 2 : 0));
  for (const values of [warming, peaks, noise])
    assert.equal(slopesOf(samplesOf(values, minute), LIMIT)[0]?.isTooSteep, false);
});

test('a server that is used and then emptied takes no more memory than before', async (t) => {
  const { slopes, samples } = await soak({
    owner: t,
    minutes: 0,
    lanes: 2,
    minRounds: 6,
    say: (line) => t.diagnostic(line),
  });
  assert.deepEqual(Object.keys(samples[0]?.values ?? {}).sort(), Object.keys(LIMITS).sort());
  for (const { values } of samples)
    for (const value of Object.values(values)) assert.ok(Number.isFinite(value));
  assert.deepEqual(
    slopes.filter(({ isTooSteep }) => isTooSteep),
    [],
  );
});
