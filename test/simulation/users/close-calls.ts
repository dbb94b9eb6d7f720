/**
 * Acts of a user about the last moments of code and of kernels: a cancellation that comes late, code that ends when its kernel is killed, and
 * code whose time is over.
 */
import type { SeededRandom } from '#test/support/random.ts';
import { DEAF, deafFor, HANG, lastWords, print, sleep } from '../kernel/cell-code.ts';
import type { World } from '../world/world.ts';
import { KILL_PATIENCE_MS } from './expectations.ts';

interface CloseCallsOptions {
  readonly world: World;
  readonly random: SeededRandom;
  /** Returns a token that no code has had yet. */
  readonly newToken: () => string;
  /** Runs code with this token. Resolves with its run; undefined when the session has taken none. */
  readonly run: (token: string, code: string, timeoutS?: number) => Promise<string | undefined>;
  readonly cancel: (runId: string) => Promise<void>;
  readonly interrupt: () => Promise<void>;
}

/** The time after which a session kills a kernel that ignores an interrupt (`cancelGrace`). */
const CANCEL_GRACE_MS = 3000;
const MAX_SENT = 20;
/** How long code runs that has a second and no end, until its kernel has obeyed the interrupt. */
const OUT_OF_TIME_MS = 4500;
/** Longer than a signal is on its way. */
const NEXT_MS = 60;

export class CloseCalls {
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #options: CloseCallsOptions;

  constructor(options: CloseCallsOptions) {
    this.#options = options;
    this.#world = options.world;
    this.#random = options.random;
  }

  /** Cancels a run when its code is about to end, and has another one taken at once, which a late signal must not reach. */
  async cancelAtEnd(): Promise<void> {
    const ms = 4 + this.#random.next() * 30;
    const runId = await this.#run(sleep(ms));
    if (runId === undefined) return;
    await this.#world.sleep(Math.max(0, ms - this.#random.next() * 8));
    await Promise.all([this.#options.cancel(runId), this.#runNext()]);
  }

  /** Ends the kernel right after many lines, the last one of which must not be lost. */
  async sayLastWords(): Promise<void> {
    const token = this.#options.newToken();
    await this.#options.run(token, lastWords(token));
  }

  /** Runs code without an end that has a second, and lets its time pass. */
  async runOutOfTime(): Promise<void> {
    const token = this.#options.newToken();
    const runId = await this.#options.run(token, `${print(token)}\n${HANG}`, 1);
    if (runId !== undefined) await this.#world.sleep(OUT_OF_TIME_MS);
  }

  /**
   * Cancels code that ignores interrupts and has no end, so that its kernel is killed, and does nothing until the run must have ended. The
   * work before it is interrupted, because a busy session takes no run.
   */
  async cancelDeaf(): Promise<void> {
    await this.#options.interrupt();
    await this.#world.sleep(NEXT_MS);
    const runId = await this.#run(DEAF);
    if (runId === undefined) return;
    await this.#options.cancel(runId);
    await this.#world.sleep(KILL_PATIENCE_MS);
  }

  /** Cancels code that ignores interrupts and ends when its kernel is about to be killed, and has another run taken at once. */
  async outlastGrace(): Promise<void> {
    const runId = await this.#run(deafFor(CANCEL_GRACE_MS + this.#random.next() * 60));
    if (runId === undefined) return;
    const sentMs = this.#world.nowMs;
    await this.#options.cancel(runId);
    await this.#world.sleep(sentMs + CANCEL_GRACE_MS - this.#world.nowMs);
    const interrupts = this.#random.is(0.3) ? this.#interruptSoon() : undefined;
    await Promise.all([this.#runNext(), interrupts]);
  }

  async #interruptSoon(): Promise<void> {
    await this.#world.sleep(this.#random.next() * 30);
    await this.#options.interrupt();
  }

  /** Sends runs until one is taken. */
  async #runNext(): Promise<void> {
    let isTaken = false;
    const sent: Promise<void>[] = [];
    for (let count = 0; count < MAX_SENT && !isTaken; count++) {
      await this.#world.sleep(this.#random.next() * 3);
      const run = this.#run(sleep(NEXT_MS)).then((runId) => {
        isTaken ||= runId !== undefined;
      });
      sent.push(run);
    }
    await Promise.all(sent);
  }

  #run(code: string): Promise<string | undefined> {
    const token = this.#options.newToken();
    return this.#options.run(token, `${print(token)}\n${code}`);
  }
}
