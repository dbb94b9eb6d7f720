/** Looks for each planted fault in a process of its own, and says in how many seeds it was found. */
import { runSimulation } from '../run-simulation.ts';
import type { Mutant } from './list.ts';

const ONLY_JOBS = ['--users', '0', '--talkers', '0', '--schedulers', '1', '--hookers', '0'];
const ONLY_HOOKS = [
  ...['--users', '0', '--talkers', '0', '--schedulers', '0', '--hookers', '1', '--kills-at-hooks'],
];

/** Calls `say` with a line for each mutant. `options` bound the search. */
export async function huntMutants(
  mutants: readonly Mutant[],
  options: readonly string[],
  say: (line: string) => void,
): Promise<void> {
  for (const { name, workers = 1, nodes = 0, isOfJobs = false, isOfHooks = false } of mutants) {
    const { isSound, text, digests } = await runSimulation(
      ...options,
      '--mutant',
      name,
      '--workers',
      `${workers}`,
      '--nodes',
      `${nodes}`,
      ...(isOfJobs ? ONLY_JOBS : isOfHooks ? ONLY_HOOKS : []),
    );
    const [, seconds = '?'] = /operations in ([\d.]+) s of one core/.exec(text) ?? [];
    const [, complaint = ''] = /^seed \d+ has \d+ problems:\n\s*(.*)$/m.exec(text) ?? [];
    const outcome = isSound ? 'not found' : `found: ${complaint}`;
    say(`${name}: ${digests.size} seeds, ${seconds} s, ${outcome}`);
  }
}
