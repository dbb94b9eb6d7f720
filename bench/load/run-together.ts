import type { Api } from '../api.ts';
import { MARK } from '../api.ts';
import { expected } from '../wire.ts';

/** A session whose cell `c0` is run, and the caller of its workspace. */
export interface RunningSession {
  readonly api: Api;
  readonly id: string;
}

/** The measurements. */
export interface RunsResult {
  readonly perSecond: number;
  /** The time from the submission of each run to its terminal status. */
  readonly tookMs: readonly number[];
}

/**
 * In each session, submits the next durable run when the last one has ended. Stops when the time is over, or when
 * each session has done as many runs as `each`.
 */
export async function runTogether(
  sessions: readonly RunningSession[],
  forMs: number,
  each = Infinity,
): Promise<RunsResult> {
  const tookMs: number[] = [];
  const startedAt = performance.now();
  await Promise.all(
    sessions.map(async (session) => {
      const isOver = () => performance.now() - startedAt >= forMs;
      tookMs.push(...(await runRepeatedly(session, each, isOver)));
    }),
  );
  return { perSecond: (tookMs.length * 1000) / (performance.now() - startedAt), tookMs };
}

/**
 * Submits durable runs in one session, each when the last one has ended, until there are `most` or `isOver` returns true. Resolves
 * with the milliseconds from the submission of each to its terminal status.
 */
export async function runRepeatedly(
  { api, id }: RunningSession,
  most: number,
  isOver: () => boolean = () => false,
): Promise<readonly number[]> {
  const feed = await api.follow(id);
  const wire = await api.wire();
  const request = api.executeBytes(id, 'c0');
  const tookMs: number[] = [];
  while (tookMs.length < most && !isOver()) {
    const completed = feed.until(MARK.completed);
    const sentAt = performance.now();
    const [accepted, completedAt] = await Promise.all([wire.send(request), completed]);
    expected(accepted, 202);
    tookMs.push(completedAt - sentAt);
  }
  feed.close();
  wire.close();
  return tookMs;
}
