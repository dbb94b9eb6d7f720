/** Asks the other workers for state that only they have in memory, within a limit of time. */
import type { Cluster, Topic } from '#src/runtime/homes/cluster.ts';

/**
 * A worker that has not answered by then is left out, and the answer says how many were left out.
 */
export const MAX_WAIT_MS = 5_000;

export interface OtherAnswers<T> {
  readonly answers: readonly T[];
  /** How many workers did not answer. Absent in a server of one process. */
  readonly silentWorkers?: number;
}

/** Resolves with the answers of the others. It never rejects. */
export async function askWorkers<T>(
  cluster: Pick<Cluster, 'size' | 'living' | 'askOthers'>,
  topic: Topic,
  payload: unknown,
): Promise<OtherAnswers<T>> {
  if (cluster.size === 1) return { answers: [] };
  // A worker that is being replaced has lost its state, so its missing answer is not counted.
  const asked = cluster.living - 1;
  const answers = (await cluster.askOthers(topic, payload, MAX_WAIT_MS)) as readonly T[];
  return { answers, silentWorkers: Math.max(0, asked - answers.length) };
}
