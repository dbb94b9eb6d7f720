/** `npm run bench -- --peers`: starts all servers, and compares them. */

import { setTimeout as sleep } from 'node:timers/promises';
import { type ComparisonOutcome, type Competitor, compare, joined } from './compare.ts';
import type { Comparison } from './comparison.ts';
import { peersPython } from './environment.ts';
import { jupyter } from './jupyter.ts';
import { limit } from './limit.ts';
import { marimo } from './marimo.ts';
import { comparisonLine, comparisonText } from './ratio-report.ts';
import type { Contestant } from './subject.ts';
import { troupe } from './troupe.ts';

/** How often each server has its turn in one comparison. */
const ROUNDS = 9;
const QUICK_ROUNDS = 2;

/** How old servers are when the comparison of young ones begins, and how often they are started. */
const YOUNG_AFTER_MS = 10_000;
const YOUNG_ROUNDS = 5;

/**
 * Takes all comparisons, and prints the outcome of each at its end. `main` is the file of Troupe's program. With
 * `young`, servers are started anew for each round. The round begins ten seconds later, without samples that warm the
 * servers up.
 */
export async function measurePeers(
  comparisons: readonly Comparison[],
  { quick, main, young }: { readonly quick: boolean; readonly main: string; readonly young: boolean },
): Promise<{ readonly outcomes: readonly ComparisonOutcome[]; readonly contestants: readonly Contestant[] }> {
  const python = await peersPython(say);
  const contestants = [
    troupe(main),
    marimo(python),
    jupyter(python, false),
    jupyter(python, true),
    limit(python),
  ];
  const outcomes: ComparisonOutcome[] = [];
  const note = (outcome: ComparisonOutcome) => {
    outcomes.push(outcome);
    process.stdout.write(`${comparisonLine(outcome)}\n`);
    process.stderr.write(`${comparisonText(outcome)}\n`);
  };
  if (young) for (const comparison of comparisons) note(await compareYoung(comparison, contestants, quick));
  else {
    await withServers(contestants, async (competitors) => {
      const rounds = quick ? QUICK_ROUNDS : ROUNDS;
      for (const comparison of comparisons) {
        say(`${comparison.name} …`);
        note(await compare(comparison, competitors, { quick, rounds, warmsUp: true }));
      }
    });
  }
  return { outcomes, contestants };
}

async function compareYoung(
  comparison: Comparison,
  contestants: readonly Contestant[],
  quick: boolean,
): Promise<ComparisonOutcome> {
  say(`${comparison.name}, young …`);
  const parts: ComparisonOutcome[] = [];
  for (let round = 0; round < (quick ? QUICK_ROUNDS : YOUNG_ROUNDS); round++) {
    // Each round begins with another contestant, because the servers of the first contestant are the
    // youngest.
    const turned = [...contestants.slice(round), ...contestants.slice(0, round)];
    parts.push(
      await withServers(turned, async (competitors) => {
        await sleep(YOUNG_AFTER_MS);
        return compare(comparison, competitors, { quick, rounds: 1, warmsUp: false });
      }),
    );
  }
  return joined(parts);
}

async function withServers<T>(
  contestants: readonly Contestant[],
  use: (competitors: readonly Competitor[]) => Promise<T>,
): Promise<T> {
  const competitors: Competitor[] = [];
  try {
    say('starting all of them …');
    await Promise.all(
      contestants.map(async (contestant, i) => {
        competitors[i] = { contestant, subject: await contestant.launch() };
      }),
    );
    return await use(competitors);
  } finally {
    await Promise.all(competitors.map((one) => one?.subject.end()));
  }
}

function say(line: string): void {
  process.stderr.write(`bench: ${line}\n`);
}
