/** Ends of runs that a user expects within some time, unless the server or its disk does not live that long. */
import type { Ledger } from '../judges/ledger.ts';
import { diskOf } from '../stand-ins/disk.ts';
import type { Life, World } from '../world/world.ts';
import { isAnswer, type SimulatedClient } from './client.ts';
import type { Follower } from './follower.ts';

/** A subscriber that reads has got the end of a run so long after somebody has read it. */
const NEWS_PATIENCE_MS = 4000;
/**
 * How long after the acceptance of its cancellation a run may still be running. Where its kernel has to be killed, the server waits 3 s for
 * the kernel (`cancelGrace`) and 1 s for its death (`KILL_MS`).
 */
export const KILL_PATIENCE_MS = 4600;
const CANCEL_PATIENCE_MS = 2600;
/** How long after its deadline a prompt may still be running: its only tool answers at once. */
const PROMPT_PATIENCE_MS = 2600;
/** The server gives a stopping kernel up after 2.5 s (`STOP_MS`, `KILL_MS`), and a closing session at the latest after 3 s (`closeDeadline`). */
const CLOSE_PATIENCE_MS = 4500;
/** The server gives a start up after 30 s (`LAUNCH_TIMEOUT_MS`). */
const START_PATIENCE_MS = 33_000;

export class Expectations {
  readonly #world: World;
  readonly #client: SimulatedClient;
  readonly #ledger: Ledger;
  /** The name of the user. */
  readonly #name: string;
  #starts = 0;

  constructor(world: World, client: SimulatedClient, ledger: Ledger, name: string) {
    this.#world = world;
    this.#client = client;
    this.#ledger = ledger;
    this.#name = name;
  }

  /** A subscriber that has been there since before the end gets it. */
  expectNews(runId: string, beganMs: number, follower: Follower | undefined): void {
    const { life } = this.#client.server;
    const isReading = () => follower?.hasReadSince(beganMs - NEWS_PATIENCE_MS, NEWS_PATIENCE_MS) === true;
    this.#world.after(NEWS_PATIENCE_MS, () => {
      if (this.#client.server.up !== life || !isReading() || this.#wasTroubled(beganMs)) return;
      if (!this.#ledger.hasSeenEnd(this.#name, runId))
        this.#world.problem(
          `the end of the run ${runId} has not reached the subscriber ${this.#name}, who reads`,
        );
    });
  }

  /**
   * A cancelled run ends soon, unless the server does not live that long. `life` is that of the server when the request was sent: a
   * process that is killed may leave an answer on its way, and takes the cancellation with it.
   */
  expectEnd(runId: string, life: Life): void {
    this.#expectEnd(runId, life, { patienceMs: this.#stopMs, why: 'after its cancellation was accepted' });
  }

  /** Work with a deadline is stopped like cancelled work once the deadline has passed. `life` is as above. */
  expectDeadline(runId: string, life: Life, timeoutS: number): void {
    this.#expectEnd(runId, life, { patienceMs: this.#stopMs, timeoutS });
  }

  /** A prompt ends once its deadline has passed, without a kernel that has to be stopped. `life` is as above. */
  expectPromptDeadline(runId: string, life: Life, timeoutS: number): void {
    this.#expectEnd(runId, life, { patienceMs: PROMPT_PATIENCE_MS, timeoutS });
  }

  /** Returns how long the server may need to stop the work of a kernel. */
  get #stopMs(): number {
    const { deaf, stubbornKernels } = this.#world.nature;
    return deaf || stubbornKernels > 0 ? KILL_PATIENCE_MS : CANCEL_PATIENCE_MS;
  }

  #expectEnd(
    runId: string,
    life: Life,
    {
      patienceMs: stopMs,
      timeoutS = 0,
      why = `after its acceptance, although its time is ${timeoutS} s`,
    }: { readonly patienceMs: number; readonly timeoutS?: number; readonly why?: string },
  ): void {
    const { server } = this.#client;
    const fromMs = this.#world.nowMs;
    const patienceMs = timeoutS * 1000 + stopMs;
    this.#world.after(patienceMs, () => {
      if (server.up !== life || this.#wasTroubled(fromMs)) return;
      // A kernel on a node that is silent hears of no interrupt, and is given up after its grace.
      if (stopMs !== KILL_PATIENCE_MS && this.#world.nodesTroubledUntilMs > fromMs) {
        this.#expectEnd(runId, life, { patienceMs: KILL_PATIENCE_MS, timeoutS: 0, why });
        return;
      }
      void this.#client.get(`/api/v3/runs/${runId}`).then((answer) => {
        if (!isAnswer(answer) || server.up !== life || answer.json.status !== 'running') return;
        // A repeated request was answered with the run of an earlier life, which has no deadline any more.
        if (timeoutS > 0 && answer.json.stale === true) return;
        this.#world.problem(`the run ${runId} still runs ${patienceMs / 1000} s ${why}`);
      });
    });
  }

  /** A closing that was sent at `fromMs` to the server of `life` has been answered: it took no longer than a kernel may need to stop. */
  requireClosedSoon(fromMs: number, life: Life): void {
    const tookMs = this.#world.nowMs - fromMs;
    if (tookMs <= CLOSE_PATIENCE_MS || this.#client.server.up !== life || this.#wasTroubled(fromMs)) return;
    this.#world.problem(
      `the closing of the session of ${this.#name} was answered after ${Math.round(tookMs)} ms`,
    );
  }

  /** A session whose start was accepted becomes ready, or fails, in the time that a start has. `read` resolves with its status. */
  expectStart(read: () => Promise<string | undefined>): void {
    const { server } = this.#client;
    const { life } = server;
    const fromMs = this.#world.nowMs;
    const starts = this.#starts;
    const isOther = () => server.up !== life || this.#starts !== starts;
    this.#world.after(START_PATIENCE_MS, () => {
      if (isOther() || this.#wasTroubled(fromMs)) return;
      void read().then((status) => {
        if (isOther() || status !== 'starting') return;
        this.#world.problem(
          `the session of ${this.#name} is starting ${START_PATIENCE_MS / 1000} s after its opening was accepted`,
        );
      });
    });
  }

  /** The session is about to be opened or closed. */
  noteStart(): void {
    this.#starts++;
  }

  /** Returns whether something was wrong with the disk since `fromMs`, so that ends wait for their commits. */
  #wasTroubled(fromMs: number): boolean {
    const { trouble, troubledAtMs } = diskOf(this.#world);
    return trouble !== undefined || troubledAtMs >= fromMs;
  }
}
