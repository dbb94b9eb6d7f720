/** Takes the samples of one comparison: all servers in turns, so that a busy moment of the machine affects all of them. */
import { spreadOf } from '../measure.ts';
import type { Aside, Comparison, Trial } from './comparison.ts';
import type { Contestant, ContestantName, Subject } from './subject.ts';

const MAX_SAMPLE_S = 60;

/** A server that runs. */
export interface Competitor {
  readonly contestant: Contestant;
  readonly subject: Subject;
}

/** The measurements of one server. */
export interface Figures {
  readonly name: ContestantName;
  /** The samples of each round. Empty when there are none, with the reason in `absent`. */
  readonly rounds: readonly (readonly number[])[];
  readonly asides: readonly Aside[];
  readonly absent?: string;
}

/** The measurements of all servers. */
export interface ComparisonOutcome {
  readonly comparison: Comparison;
  readonly figures: readonly Figures[];
  readonly seconds: number;
}

interface Entry {
  readonly name: ContestantName;
  readonly trial: Trial;
  readonly rounds: (readonly number[])[];
  failure?: string;
}

/** A server that fails in a comparison has no figures in it; the others continue. */
export async function compare(
  comparison: Comparison,
  competitors: readonly Competitor[],
  { quick, rounds, warmsUp }: { readonly quick: boolean; readonly rounds: number; readonly warmsUp: boolean },
): Promise<ComparisonOutcome> {
  const startedAt = performance.now();
  const entries: Entry[] = [];
  const absent: Figures[] = [];
  for (const { contestant, subject } of competitors) {
    const { name } = contestant;
    const missing = (reason: string) => absent.push({ name, rounds: [], asides: [], absent: reason });
    try {
      const trial = await comparison.begin(subject, contestant, quick);
      if (trial === undefined) missing(comparison.absent?.[name] ?? 'it has nothing of the kind');
      else entries.push({ name, trial, rounds: [] });
    } catch (error) {
      missing(messageOf(error));
    }
  }
  const perRound = quick ? (comparison.quickPerRound ?? comparison.perRound) : comparison.perRound;
  for (let round = warmsUp ? 0 : 1; round <= rounds; round++) {
    for (const entry of turned(entries, round)) await takeRound(entry, perRound, round === 0);
  }
  const figures = entries.map(({ name, trial, rounds, failure }): Figures => {
    const reason = failure ?? (rounds.length === 0 ? comparison.absent?.[name] : undefined);
    return {
      name,
      rounds,
      asides: trial.asides?.() ?? [],
      ...(reason === undefined ? {} : { absent: reason }),
    };
  });
  for (const { trial } of entries) await trial.end().catch(() => undefined); // a session that has failed
  return { comparison, figures: [...figures, ...absent], seconds: (performance.now() - startedAt) / 1000 };
}

/** Returns outcomes of one comparison as one outcome. A server that has failed in one of them has no figures. */
export function joined(parts: readonly ComparisonOutcome[]): ComparisonOutcome {
  const [first] = parts;
  if (first === undefined) throw new Error('Nothing was compared.');
  const figures = first.figures.map(({ name }): Figures => {
    const all = parts.flatMap((part) => part.figures.filter((one) => one.name === name));
    const failed = all.find(({ absent }) => absent !== undefined);
    if (failed !== undefined) return { ...failed, rounds: [] };
    return { name, rounds: all.flatMap(({ rounds }) => rounds), asides: all.at(-1)?.asides ?? [] };
  });
  return {
    comparison: first.comparison,
    figures,
    seconds: parts.reduce((sum, { seconds }) => sum + seconds, 0),
  };
}

/** Takes one round of samples. Samples of the first round are for warming up and are discarded. */
async function takeRound(entry: Entry, perRound: number, isFirst: boolean): Promise<void> {
  if (entry.failure !== undefined) return;
  const samples: number[] = [];
  try {
    for (let i = 0; i < perRound; i++) samples.push(...(await inTime(entry.trial.sample())));
  } catch (error) {
    entry.failure = messageOf(error);
    entry.rounds.length = 0;
    return;
  }
  if (!isFirst && samples.length > 0) entry.rounds.push(samples);
}

/** Rejects when the sample takes so long that an answer was probably lost. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`It took longer than ${MAX_SAMPLE_S} s.`)),
      MAX_SAMPLE_S * 1000,
    );
  });
  work.catch(() => undefined); // the operation may fail after its time was over
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the entries in another order for each round, so that no server always comes after the same one. */
function turned<T>(all: readonly T[], by: number): readonly T[] {
  const start = all.length === 0 ? 0 : by % all.length;
  return [...all.slice(start), ...all.slice(0, start)];
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
}

/** Returns the compared statistic of each round. */
export function perRound({ statistic }: Comparison, { rounds }: Figures): readonly number[] {
  return rounds.map((samples) => spreadOf(samples)[statistic ?? 'p50']);
}
