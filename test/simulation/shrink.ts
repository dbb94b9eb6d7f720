/** Looks for a smaller life in which the same seed still fails. */
import { type SimulationOptions, simulate } from './simulation.ts';

const MAX_ATTEMPTS = 60;
/** A life of less than this says little about time any more. */
const MIN_SECONDS = 0.5;

/** Resolves with the smallest options that were found. `options` fail. */
export async function shrink(seed: number, options: SimulationOptions): Promise<SimulationOptions> {
  let left = MAX_ATTEMPTS;
  const fails = async (smaller: SimulationOptions): Promise<boolean> =>
    left-- > 0 && (await simulate(seed, smaller)).problems.length > 0;
  let found = options;
  const attempt = async (smaller: SimulationOptions): Promise<boolean> => {
    if (!(await fails(smaller))) return false;
    found = smaller;
    return true;
  };
  await attempt({ ...found, crashes: false });
  await attempt({ ...found, talkers: 0 });
  await attempt({ ...found, schedulers: 0 });
  await attempt({ ...found, hookers: 0 });
  for (let users = 1; users < (found.users ?? 1); users++) if (await attempt({ ...found, users })) break;
  for (let seconds = found.seconds / 2; seconds >= MIN_SECONDS; seconds /= 2)
    if (!(await attempt({ ...found, seconds }))) break;
  await withoutActs(found, attempt);
  return found;
}

/** Leaves out acts of users: first large parts of them, then smaller ones. */
async function withoutActs(
  options: SimulationOptions,
  attempt: (smaller: SimulationOptions) => Promise<boolean>,
): Promise<void> {
  let skipped = options.skippedActs ?? [];
  const acts = Math.ceil(options.seconds * ACTS_A_SECOND);
  for (let size = Math.ceil(acts / 2); size >= 1; size = Math.floor(size / 2))
    for (let from = 0; from < acts; from += size) {
      const part: readonly [number, number] = [from, from + size];
      const isSkipped = skipped.some(([first, end]) => first <= part[0] && part[1] <= end);
      if (!isSkipped && (await attempt({ ...options, skippedActs: [...skipped, part] })))
        skipped = [...skipped, part];
    }
}

/** Users do at most about so many acts in a second; later ones are never left out. */
const ACTS_A_SECOND = 20;
