import type { ResyncReason } from '#src/wire/shape.ts';
import { ActivityClock } from './activity-clock.ts';
import { Backpressure } from './backpressure.ts';
import type { ChunkRing } from './chunk-ring.ts';
import { HEARTBEAT } from './event-sink.ts';
import type { Heartbeats, HeartbeatTarget } from './heartbeats.ts';
import { Listeners } from './listeners.ts';
import type { ChargedStream, Laggard, StreamBudget } from './stream-budget.ts';
import type { Subscriber } from './subscriber.ts';

export interface AudienceOptions {
  readonly ring: ChunkRing;
  /** How far a subscriber may fall behind. */
  readonly limitBytes: number;
  /** What is kept in the ring for subscribers that come back with a `Last-Event-ID`. */
  readonly resumeBytes: number;
  readonly heartbeats: Heartbeats | undefined;
  /** What is kept for those who lag counts into it. */
  readonly budget: StreamBudget | undefined;
  /** Returns the bytes of events that wait for a commit and are not in the ring yet. */
  readonly gatedBytes: () => number;
  /** Whether the last event of the stream is in the ring. */
  readonly isEnded: () => boolean;
  /** Returns the frame that says why a subscriber is cut off. */
  readonly resyncFrame: (reason: ResyncReason) => Uint8Array;
}

const MOVING_LIMIT_FACTOR = 4;

/**
 * The subscribers of one stream. It writes the chunks of the ring to them, keeps their connections alive, decides who lags
 * too far, and discards chunks that nobody needs. It never adds to the ring.
 */
export class Audience implements ChargedStream, HeartbeatTarget {
  readonly #options: AudienceOptions;
  readonly #subscribers = new Set<Subscriber>();
  readonly #blocked = new Set<Subscriber>();
  #userCount = 0;
  readonly backpressure: Backpressure;
  /** Told each time the last user has left. */
  readonly unused = new Listeners<void>();
  /** Told each time the last subscriber has left. */
  readonly empty = new Listeners<void>();
  readonly #clock = new ActivityClock();
  #chargedBytes = 0;

  constructor(options: AudienceOptions) {
    this.#options = options;
    this.backpressure = new Backpressure(options.limitBytes, () => this.settle());
  }

  get size(): number {
    return this.#subscribers.size;
  }

  /** How many there are without those who only look. */
  get userCount(): number {
    return this.#userCount;
  }

  has(subscriber: Subscriber): boolean {
    return this.#subscribers.has(subscriber);
  }

  add(subscriber: Subscriber): void {
    this.#subscribers.add(subscriber);
    if (!subscriber.observes) this.#userCount++;
    if (this.#subscribers.size === 1) this.#options.heartbeats?.add(this);
  }

  /** Returns whether the subscriber was here. */
  remove(subscriber: Subscriber): boolean {
    if (!this.#subscribers.delete(subscriber)) return false;
    this.#blocked.delete(subscriber);
    if (this.#subscribers.size === 0) this.#options.heartbeats?.delete(this);
    if (!subscriber.observes && --this.#userCount === 0) this.unused.tell();
    if (this.#subscribers.size === 0) this.empty.tell();
    return true;
  }

  /** Writes what a subscriber has not got until its connection refuses; ends it after the last event of the stream. */
  pump(subscriber: Subscriber): void {
    if (!this.has(subscriber)) return;
    const { ring, isEnded } = this.#options;
    subscriber.pump(ring);
    if (subscriber.blocked) this.#blocked.add(subscriber);
    else this.#blocked.delete(subscriber);
    if (isEnded() && subscriber.isCaughtUp(ring)) {
      this.remove(subscriber);
      subscriber.sink.end();
    }
  }

  /** Writes the newest chunk to everyone whose connection takes bytes. */
  pumpAll(): void {
    for (const subscriber of this.#subscribers) if (!subscriber.blocked) this.pump(subscriber);
    this.settle();
  }

  /** Keeps the connections of one slot of subscribers alive. */
  beat(slot: number, slots: number): void {
    let place = 0;
    for (const subscriber of this.#subscribers) {
      if (place++ % slots !== slot || subscriber.blocked) continue;
      subscriber.write(HEARTBEAT);
      if (subscriber.blocked) this.#blocked.add(subscriber);
    }
  }

  /** Cuts off subscribers that lag too far, discards what nobody needs, and pauses or resumes the producer. */
  settle(): void {
    const { ring, limitBytes, resumeBytes, budget } = this.#options;
    let needed = ring.nextIndex;
    let worstBytes = this.#options.gatedBytes();
    let ownBytes = 0;
    let furthestBytes = 0;
    const nowMs = this.#blocked.size > 0 ? this.#clock.read() : 0;
    for (const subscriber of this.#blocked) {
      const lagBytes = subscriber.lagBytes(ring);
      // The producer waits for nobody who only looks.
      const isMoving = !subscriber.observes && subscriber.isMoving(nowMs);
      if (lagBytes > (isMoving ? limitBytes * MOVING_LIMIT_FACTOR : limitBytes)) {
        this.#cutOff(subscriber, 'slow_subscriber');
        continue;
      }
      if (isMoving) worstBytes = Math.max(worstBytes, lagBytes);
      if (lagBytes > 0) needed = Math.min(needed, subscriber.next);
      ownBytes += subscriber.ownBytes;
      furthestBytes = Math.max(furthestBytes, lagBytes);
    }
    ring.trim(needed, resumeBytes);
    this.backpressure.update(worstBytes);
    const chargedBytes = ownBytes + furthestBytes;
    if (chargedBytes === this.#chargedBytes) return;
    this.#chargedBytes = chargedBytes;
    budget?.charge(this, chargedBytes);
  }

  /** Yields those whose connection has not taken everything; for the budget. */
  *laggards(): Generator<Laggard> {
    for (const subscriber of this.#blocked) {
      const { ownBytes } = subscriber;
      const behindBytes = ownBytes + subscriber.lagBytes(this.#options.ring);
      yield { behindBytes, ownBytes, cutOff: () => this.#cutOff(subscriber, 'slow_subscriber') };
    }
  }

  cutOffAll(reason: ResyncReason): void {
    for (const subscriber of this.#subscribers) this.#cutOff(subscriber, reason);
    this.settle();
  }

  #cutOff(subscriber: Subscriber, reason: ResyncReason): void {
    this.remove(subscriber);
    subscriber.sink.cutOff([...subscriber.restOfFrame(), this.#options.resyncFrame(reason)]);
  }
}
