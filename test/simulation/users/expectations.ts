/** Ends of runs that a user expects within some time, unless the server or its disk does not live that long. */
import type { Ledger } from '../judges/ledger.ts';
import { diskOf } from '../stand-ins/disk.ts';
import type { Life, World } from '../world/world.ts';
import { isAnswer, type SimulatedClient } from './client.ts';
import type { Follower } from './follower.ts';

/** A subscriber that reads has got the end of a run so long after somebody has read it. */
const NEWS_PATIENCE_MS = 4000;
/**
 * How long after the acceptance of its cancellation a run may still be running: more than the server needs to kill its kernel if code ignores
 * interrupts, and less if none does.
 */
const DEAF_PATIENCE_MS = 8000;
const CANCEL_PATIENCE_MS = 2600;

export class Expectations {
  readonly #world: World;
  readonly #client: SimulatedClient;
  readonly #ledger: Ledger;
  /** The name of the user. */
  readonly #name: string;

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
    const { server } = this.#client;
    const fromMs = this.#world.nowMs;
    const patienceMs = this.#world.nature.deaf ? DEAF_PATIENCE_MS : CANCEL_PATIENCE_MS;
    this.#world.after(patienceMs, () => {
      if (server.up !== life || this.#wasTroubled(fromMs)) return;
      void this.#client.get(`/api/v3/runs/${runId}`).then((answer) => {
        if (!isAnswer(answer) || server.up !== life || answer.json.status !== 'running') return;
        this.#world.problem(
          `the run ${runId} still runs ${patienceMs / 1000} s after its cancellation was accepted`,
        );
      });
    });
  }

  /** Returns whether something was wrong with the disk since `fromMs`, so that ends wait for their commits. */
  #wasTroubled(fromMs: number): boolean {
    const { trouble, troubledAtMs } = diskOf(this.#world);
    return trouble !== undefined || troubledAtMs >= fromMs;
  }
}
