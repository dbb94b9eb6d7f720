/**
 * Reports events of this worker's actors to the workers in which somebody follows them. Without followers, no events are
 * recorded. A report is sent once all its events are on disk, at most ten times a second to each worker. The next report waits
 * until the other worker has taken the last one, so the events of an actor stay in order.
 */
import { Pace } from '#src/base/time/pace.ts';
import type { ActorStreamEnvelope } from '#src/contract/wire/actor.ts';
import type { Store } from '#storage/store.ts';
import { ActorChanges, type JoinedChange } from './actor-changes.ts';
import { envelopeOf } from './actor-envelope.ts';
import { type ActorInterest, concerns } from './actor-interest.ts';
import type { ActorChange, ActorWatch } from './actor-watch.ts';
import type { Address } from './address.ts';

/** An event of an actor. */
export interface ActorReport {
  readonly address: Address;
  /** The event for followers; absent when the followers of the actor get counts. */
  readonly envelope?: ActorStreamEnvelope;
}

export interface ActorReports {
  readonly reports: readonly ActorReport[];
  /** Whether events are missing from the report, so that followers have to read the lists again. */
  readonly isIncomplete: boolean;
}

/** Resolves with true once the other worker has accepted the reports, with false if it refused them. */
type SendReports = (worker: number, reports: ActorReports) => Promise<boolean>;

export const REPORT_GAP_MS = 100;
/** The most events that wait for one worker. Further events are dropped. */
const MAX_PENDING_CHANGES = 4_096;

/** A worker in which somebody follows actors of this worker. */
interface Follower {
  interests: readonly ActorInterest[];
  readonly changes: ActorChanges;
  readonly pace: Pace;
  isIncomplete: boolean;
}

export class ActorReporter implements Disposable {
  readonly #watch: Pick<ActorWatch, 'add'>;
  readonly #store: Pick<Store, 'durable'>;
  readonly #reportTo: SendReports;
  readonly #followers = new Map<number, Follower>();
  #stopWatching: (() => void) | undefined;

  constructor(watch: Pick<ActorWatch, 'add'>, store: Pick<Store, 'durable'>, send: SendReports) {
    this.#watch = watch;
    this.#store = store;
    this.#reportTo = send;
  }

  /** Reports events of these actors to the worker from now on, in place of the earlier selection. */
  follow(worker: number, interests: readonly ActorInterest[]): void {
    const known = this.#followers.get(worker);
    if (interests.length === 0) this.forget(worker);
    else if (known !== undefined) known.interests = interests;
    else {
      const pace = new Pace(REPORT_GAP_MS, () => this.#report(worker, follower));
      const follower: Follower = { interests, changes: new ActorChanges(), pace, isIncomplete: false };
      this.#followers.set(worker, follower);
      this.#stopWatching ??= this.#watch.add((change) => this.#note(change));
    }
  }

  /** Ends the reports to a worker, which may have ended. */
  forget(worker: number): void {
    this.#followers.get(worker)?.pace[Symbol.dispose]();
    this.#followers.delete(worker);
    if (this.#followers.size > 0) return;
    this.#stopWatching?.();
    this.#stopWatching = undefined;
  }

  /** Sends the noted events at once, before another worker can report about actors that move there. */
  leaveTo(): void {
    for (const { pace } of this.#followers.values()) pace.hurry();
  }

  #note(change: ActorChange): void {
    const { address } = change.actor;
    for (const follower of this.#followers.values()) {
      if (!follower.interests.some((interest) => concerns(interest, address))) continue;
      if (follower.isIncomplete) continue;
      follower.changes.add(change);
      if (follower.changes.count > MAX_PENDING_CHANGES) {
        follower.changes.take();
        follower.isIncomplete = true;
      }
      follower.pace.ask();
    }
  }

  /** Never rejects. */
  async #report(worker: number, follower: Follower): Promise<void> {
    const { interests, changes, isIncomplete } = follower;
    const reports = changes.take().map((change) => reportOf(change, interests));
    follower.isIncomplete = false;
    const isTaken = await this.#send(worker, { reports, isIncomplete }).catch(() => false);
    if (isTaken || this.#followers.get(worker) !== follower) return;
    follower.isIncomplete = true;
    follower.pace.ask();
  }

  async #send(worker: number, reports: ActorReports): Promise<boolean> {
    await this.#store.durable();
    return this.#reportTo(worker, reports);
  }

  [Symbol.dispose](): void {
    for (const worker of [...this.#followers.keys()]) this.forget(worker);
  }
}

function reportOf(change: JoinedChange, interests: readonly ActorInterest[]): ActorReport {
  const { address } = change;
  const isTold =
    change.type === 'refused' ||
    interests.some((interest) => interest.choice.moves && concerns(interest, address));
  return isTold ? { address, envelope: envelopeOf(change) } : { address };
}
