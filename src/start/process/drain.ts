/**
 * The orderly end of a process that serves: it finishes the requests it has begun, stores everything and ends its
 * kernels.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { RootLog } from '#src/base/log/log.ts';
import { exitAtOnce } from '#src/base/os/exit.ts';
import type { App } from '../app/app-interface.ts';

/** The longest duration of a drain, counted from its actual start, and the additional time for each session with a kernel. */
const DRAIN_BASE_MS = 4_800;
const DRAIN_MS_PER_SESSION = 50;
/** How long a drain that takes too long waits for writes in progress. */
const LAST_WRITE_MS = 1_000;

export interface DrainOptions {
  readonly app: Pick<App, 'load' | 'stored'> & AsyncDisposable;
  readonly log: RootLog;
  /** The name of the draining process in the log. */
  readonly subject: 'server' | 'worker';
  /** How long the server still answers while `readyz` says that it is not ready. */
  readonly leavingMs: number;
}

/**
 * Drains, within the time that fits the number of sessions. Resolves with whether everything was
 * stored; rejects when stopping failed. The process must end afterwards.
 */
export async function drain(
  { app, log, subject, leavingMs }: DrainOptions,
  signal: string,
): Promise<boolean> {
  const { sessions, runs, streams } = app.load();
  const deadlineMs = leavingMs + DRAIN_BASE_MS + sessions * DRAIN_MS_PER_SESSION;
  log.info({ signal, sessions, runs, streams, deadlineMs }, `the ${subject} drains`);
  const startedAt = performance.now();
  const end = async (isStored: boolean, message: string): Promise<boolean> => {
    const fields = { sessions, runs, ms: Math.round(performance.now() - startedAt) };
    if (isStored) log.info(fields, message);
    else
      log.error(
        fields,
        `${message}, and changes that the disk did not take are lost; none of them was acknowledged`,
      );
    await log.written();
    return isStored;
  };
  const giveUp = async () => {
    await pause(deadlineMs, undefined, { ref: false });
    const stored = Promise.resolve(app.stored()).then(() => true);
    const isStored = await Promise.race([stored, pause(LAST_WRITE_MS, false)]);
    await end(isStored, `the ${subject} has stopped before all that it had begun`);
    await exitAtOnce(isStored ? 0 : 1); // a thread may be in a call that never returns
    return isStored;
  };
  const finish = async () => {
    await app[Symbol.asyncDispose]();
    return end(true, `the ${subject} has stopped`);
  };
  return Promise.race([finish(), giveUp()]);
}
