/**
 * Reports what happens to the actors of this worker to the workers in which somebody follows it. Nothing is noted while nobody
 * does. A report is sent once all that it tells is on disk, at most ten times a second to each worker, and the next one only after the
 * other worker has taken it; so what happens to one actor is told in order.
 */
import { Pace } from '#src/core/pace.ts';
import type { ActorStreamEnvelope } from '#src/wire/actor.ts';
import { ActorChanges, type JoinedChange } from './actor-changes.ts';
import { envelopeOf } from './actor-envelope.ts';
import { type ActorInterest, concerns } from './actor-interest.ts';
import type { ActorChange, ActorWatch } from './actor-watch.ts';
import type { Address } from './address.ts';

/** What happened to an actor. */
export interface ActorReport {
  readonly address: Address;
  /** Absent when those who follow the actor get counts. */
  readonly envelope?: ActorStreamEnvelope;
}

export interface ActorReports {
  readonly reports: readonly ActorReport[];
  /** Whether more has happened than is told: those who follow have to read it anew. */
  readonly isIncomplete: boolean;
}

export interface ActorReporterOptions {
  readonly watch: Pick<ActorWatch, 'add'>;
  /** Resolves once what was decided so far is on disk; undefined when it is. */
  readonly durable: () => Promise<void> | undefined;
  /** Resolves with whether the other worker has taken the reports. */
  readonly send: (worker: number, reports: ActorReports) => Promise<boolean>;
}

export const REPORT_GAP_MS = 100;
/** Of one worker, until they are taken. What is beyond is not told. */
const MAX_PENDING_CHANGES = 4_096;

/** A worker in which somebody follows actors of this one. */
interface Follower {
  interests: readonly ActorInterest[];
  readonly changes: ActorChanges;
  readonly pace: Pace;
  isIncomplete: boolean;
}

export class ActorReporter implements Disposable {
  readonly #options: ActorReporterOptions;
  readonly #followers = new Map<number, Follower>();
  #stopWatching: (() => void) | undefined;

  constructor(options: ActorReporterOptions) {
    this.#options = options;
  }

  /** Reports to the worker what happens to these actors from now on, in place of those before. */
  follow(worker: number, interests: readonly ActorInterest[]): void {
    const known = this.#followers.get(worker);
    if (interests.length === 0) this.forget(worker);
    else if (known !== undefined) known.interests = interests;
    else {
      const pace = new Pace(REPORT_GAP_MS, () => this.#report(worker, follower));
      const follower: Follower = { interests, changes: new ActorChanges(), pace, isIncomplete: false };
      this.#followers.set(worker, follower);
      this.#stopWatching ??= this.#options.watch.add((change) => this.#note(change));
    }
  }

  /** Ends what is reported to a worker, which may have ended. */
  forget(worker: number): void {
    this.#followers.get(worker)?.pace[Symbol.dispose]();
    this.#followers.delete(worker);
    if (this.#followers.size > 0) return;
    this.#stopWatching?.();
    this.#stopWatching = undefined;
  }

  /** Reports at once what was noted: another worker may soon report of the same actors, because they go there. */
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
    await this.#options.durable();
    return this.#options.send(worker, reports);
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
