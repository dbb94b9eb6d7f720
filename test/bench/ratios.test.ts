// tier: whole, because it runs scenarios of the bench
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ComparisonOutcome } from '../../bench/peers/compare.ts';
import { plotOf } from '../../bench/peers/plot.ts';
import { ratiosOf } from '../../bench/peers/ratios.ts';
import type { ContestantName } from '../../bench/peers/subject.ts';

/** Returns an outcome with one sample in each round. */
function outcomeOf(
  unit: 'ms' | '/s',
  targets: ComparisonOutcome['comparison']['targets'],
  rounds: Partial<Record<ContestantName, readonly number[]>>,
): ComparisonOutcome {
  const comparison = {
    name: 'it',
    title: 'It <is> done',
    unit,
    perRound: 1,
    targets,
    begin: async () => undefined,
  };
  const figures = (Object.entries(rounds) as [ContestantName, readonly number[]][]).map(([name, values]) => ({
    name,
    rounds: values.map((value) => [value]),
    asides: [],
  }));
  return { comparison, figures, seconds: 1 };
}

test('a ratio is the median over the rounds, relative to the better peer', () => {
  const outcome = outcomeOf(
    'ms',
    { peer: 3, limit: 1.5 },
    {
      troupe: [1, 2, 4],
      marimo: [30, 30, 30],
      jupyter: [4, 6, 16],
      limit: [1, 1, 4],
    },
  );
  const { peer, limit, isMet } = ratiosOf(outcome);
  assert.deepEqual(peer, { to: 'jupyter', value: 4, least: 3, most: 4 });
  assert.deepEqual(limit, { to: 'limit', value: 1, least: 1, most: 2 });
  assert.equal(isMet, true);
});

test("for rates, the ratio is Troupe's rate divided by the rate of the peer, and the share of the limit", () => {
  const { peer, limit, isMet } = ratiosOf(
    outcomeOf('/s', { peer: 12, limit: 0.7 }, { troupe: [600], marimo: [50], limit: [1000] }),
  );
  assert.equal(peer?.value, 12);
  assert.equal(limit?.value, 0.6);
  assert.equal(isMet, false);
});

test('a tail that is slower than the tail of the better peer misses the target', () => {
  const times = { troupe: [1, 1, 9], marimo: [2, 2, 8] };
  assert.equal(ratiosOf(outcomeOf('ms', { peer: 1.2 }, times)).isMet, true);
  assert.equal(ratiosOf(outcomeOf('ms', { peer: 1.2, tail: true }, times)).isMet, false);
});

test('a target without figures counts neither as met nor as missed', () => {
  assert.equal(ratiosOf(outcomeOf('ms', { peer: 2 }, { troupe: [1] })).isMet, undefined);
});

test('a plot shows every server, escapes its title, and follows the theme of the reader', () => {
  const svg = plotOf(outcomeOf('ms', {}, { troupe: [1, 2], marimo: [10, 20], jupyter: [] }));
  assert.match(svg, /aria-label="it: It &lt;is> done"/);
  assert.match(svg, /prefers-color-scheme: dark/);
  assert.equal(svg.match(/<circle/g)?.length, 2);
  assert.match(svg, /class="jupyter">.*\n.*no figure/);
});
