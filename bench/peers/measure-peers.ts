/** `npm run bench -- --peers`: starts all servers, and compares them. */

import { type ComparisonOutcome, type Competitor, compare } from './compare.ts';
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

/** Compares, and prints each outcome when it is known. `main` is the file of Troupe's program. */
export async function measurePeers(
  comparisons: readonly Comparison[],
  { quick, main }: { readonly quick: boolean; readonly main: string },
): Promise<{ readonly outcomes: readonly ComparisonOutcome[]; readonly contestants: readonly Contestant[] }> {
  const say = (line: string) => process.stderr.write(`bench: ${line}\n`);
  const python = await peersPython(say);
  const contestants = [
    troupe(main),
    marimo(python),
    jupyter(python, false),
    jupyter(python, true),
    limit(python),
  ];
  const competitors: Competitor[] = [];
  const outcomes: ComparisonOutcome[] = [];
  try {
    say('starting all of them …');
    await Promise.all(
      contestants.map(async (contestant, i) => {
        competitors[i] = { contestant, subject: await contestant.launch() };
      }),
    );
    for (const comparison of comparisons) {
      say(`${comparison.name} …`);
      const outcome = await compare(comparison, competitors, {
        quick,
        rounds: quick ? QUICK_ROUNDS : ROUNDS,
      });
      outcomes.push(outcome);
      process.stdout.write(`${comparisonLine(outcome)}\n`);
      process.stderr.write(`${comparisonText(outcome)}\n`);
    }
  } finally {
    await Promise.all(competitors.map((one) => one?.subject.end()));
  }
  return { outcomes, contestants };
}
