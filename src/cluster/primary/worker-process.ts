/** One worker as its primary sees it: a process, its state, and the table that it has. */
import type { Worker } from 'node:cluster';
import { setTimeout as pause } from 'node:timers/promises';
import type { ToPrimary, ToWorker } from '../messages.ts';
import { WorkerWatch } from './watchdog.ts';

/**
 * `loading`: it has no orders. `opening`: it opens the store. `joined`: other workers can ask it. `admitted`: it is to
 * listen for clients. `serving`: it listens. `draining`: it was ordered to end.
 */
type Phase = 'loading' | 'opening' | 'joined' | 'admitted' | 'serving' | 'draining';

export interface WorkerEvents {
  told(worker: WorkerProcess, message: ToPrimary): void;
  /** Called once, after everything else. */
  ended(worker: WorkerProcess, end: WorkerEnd): void;
}

export interface WorkerEnd {
  /** The exit code; null when a signal has ended the process. */
  readonly code: number | null;
  /** In words. */
  readonly how: string;
}

export class WorkerProcess {
  readonly number: number;
  readonly pid: number;
  readonly watch = new WorkerWatch();
  readonly startedAt = performance.now();
  readonly #process: Worker;
  phase: Phase = 'loading';
  /** It waits for its orders. */
  isLoaded = false;
  /** The number of the newest table that it knows. */
  known = 0;
  /** The first table in which it is. */
  since = 0;
  /** It drains, and its subscribers have been notified. */
  isSuspended = false;
  /** It is to be replaced, and no longer counts among the workers that the server should have. */
  isRetiring = false;
  /** The worker that gets its slots when it has ended, if that worker serves then. */
  heir: WorkerProcess | undefined;
  /** The worker that ends once this one serves. */
  replaces: WorkerProcess | undefined;
  /** The reason that it gave for not starting. */
  problem: string | undefined;
  /** The reason for which the primary has killed it. */
  fault: string | undefined;

  constructor(number: number, process: Worker, events: WorkerEvents) {
    this.#process = process;
    this.number = number;
    this.pid = process.process.pid ?? 0;
    process.on('message', (message: ToPrimary) => events.told(this, message));
    process.on('error', (error) => {
      this.problem ??= error.message;
    });
    const finish = (code: number | null, how: string) => events.ended(this, { code, how });
    if (process.process.pid === undefined) {
      setImmediate(() => finish(null, this.problem ?? 'it could not be started'));
      return;
    }
    process.once('exit', (code: number | null, signal: string | null) => {
      void this.#lastWords().then(() =>
        finish(code, signal === null ? `exit code ${code}` : `signal ${signal}`),
      );
    });
  }

  /**
   * Resolves once everything was heard that the process has said, which may come after the news of its end. It does not wait
   * for the event `disconnect`: Node.js emits none for a process that dies while a socket is on its way to it.
   */
  async #lastWords(): Promise<void> {
    while (this.#process.isConnected()) await pause(1);
  }

  /** Whether it has ever listened for clients. */
  get hasServed(): boolean {
    return this.phase === 'serving' || this.phase === 'draining';
  }

  /** Whether this worker serves clients or is about to. */
  get isAdmitted(): boolean {
    return this.phase === 'admitted' || this.phase === 'serving' || this.phase === 'draining';
  }

  send(message: ToWorker): void {
    // A message that cannot be sent any more is not needed: the worker's end follows.
    if (this.#process.isConnected()) this.#process.send(message, () => {});
  }

  /** Makes it end in order. A worker that does not serve yet is killed, because it has nothing to end. */
  drain(signal: string): void {
    if (this.isAdmitted) {
      this.phase = 'draining';
      this.send({ op: 'drain', signal });
    } else this.kill();
  }

  kill(): void {
    this.#process.process.kill('SIGKILL');
  }
}
