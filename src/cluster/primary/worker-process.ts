/** One worker from the primary's view: its process, its phase, and the number of its table. */

import type { Worker } from 'node:cluster';
import { setTimeout as pause } from 'node:timers/promises';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { ToPrimary, ToWorker } from '../messages.ts';
import { WorkerWatch } from './watchdog.ts';

/**
 * `loading`: the worker has no orders. `opening`: it opens the store. `joined`: other workers can ask it. `admitted`: it was told
 * to listen for clients. `serving`: it listens. `draining`: it was ordered to end.
 */
type Phase = 'loading' | 'opening' | 'joined' | 'admitted' | 'serving' | 'draining';

export interface WorkerEvents {
  told(worker: WorkerProcess, message: ToPrimary): void;
  /** Called once, after all other callbacks. */
  ended(worker: WorkerProcess, end: WorkerEnd): void;
}

export interface WorkerEnd {
  /** The exit code; null when a signal has ended the process. */
  readonly code: number | null;
  /** The end in words, for the log. */
  readonly how: string;
}

export class WorkerProcess {
  readonly number: number;
  readonly pid: number;
  readonly watch = new WorkerWatch();
  readonly startedAt = performance.now();
  readonly #process: Worker;
  phase: Phase = 'loading';
  /** Whether the worker has loaded its program and waits for its orders. */
  isLoaded = false;
  /** The number of the newest table that the worker knows. */
  known = 0;
  /** The number of the first slot table that lists this worker. */
  since = 0;
  /** Whether the worker drains and its subscribers have been notified. */
  isSuspended = false;
  /** Whether the worker is being replaced. It then no longer counts towards the size of the server. */
  isRetiring = false;
  /** Whether the primary has killed this worker before it served, because another worker has its place. */
  isUnneeded = false;
  /** The worker that gets the slots when this worker ends, if the heir serves then. */
  heir: WorkerProcess | undefined;
  /** The worker that ends once this one serves. */
  replaces: WorkerProcess | undefined;
  /** The reason that the worker gave for not starting. */
  problem: string | undefined;
  /** The reason for which the primary has killed the worker. */
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
      const finished = this.#lastWords().then(() =>
        finish(code, signal === null ? `exit code ${code}` : `signal ${signal}`),
      );
      unawaited(finished, 'worker-process: the end of a worker');
    });
  }

  /**
   * Resolves once every message of the process was read, because some arrive after the news of its end. The event `disconnect`
   * cannot show that: Node.js omits it for a process that dies while a socket is being sent to it.
   */
  async #lastWords(): Promise<void> {
    while (this.#process.isConnected()) await pause(1);
  }

  /** Whether the worker has ever listened for clients. */
  get hasServed(): boolean {
    return this.phase === 'serving' || this.phase === 'draining';
  }

  /** Whether this worker serves clients or is about to. */
  get isAdmitted(): boolean {
    return this.phase === 'admitted' || this.phase === 'serving' || this.phase === 'draining';
  }

  send(message: ToWorker): void {
    // A message that can no longer be sent is not needed, because the worker's end follows.
    if (this.#process.isConnected()) this.#process.send(message, () => {});
  }

  /**
   * Orders the worker to drain and end. A worker that does not serve yet has no work to finish, so it is killed.
   */
  drain(signal: string): void {
    if (this.isAdmitted) {
      this.phase = 'draining';
      this.send({ op: 'drain', signal });
    } else {
      this.isUnneeded = true;
      this.kill();
    }
  }

  kill(): void {
    this.#process.process.kill('SIGKILL');
  }
}
