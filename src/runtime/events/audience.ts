import type { ResyncReason } from '#src/contract/wire/shape.ts';
import { ActivityClock } from './activity-clock.ts';
import { Backpressure } from './backpressure.ts';
import type { ChunkRing } from './chunk-ring.ts';
import { type FeedHead, type FeedLink, HEARTBEAT, type Relay, type Subscription } from './event-sink.ts';
import { Feed, Feeds } from './feed.ts';
import type { HeartbeatTarget } from './heartbeats.ts';
import { Listeners } from './listeners.ts';
import type { ProcessStreams } from './process-streams.ts';
import type { ChargedStream, Laggard } from './stream-budget.ts';
import type { Subscriber } from './subscriber.ts';

export interface AudienceOptions extends ProcessStreams {
  readonly ring: ChunkRing;
  /** The bytes kept in the ring for subscribers that come back with a `Last-Event-ID`. */
  readonly resumeBytes: number;
  /** Returns whether the last event of the stream is in the ring. */
  readonly isEnded: () => boolean;
  /** Returns the frame that tells a subscriber why it is cut off. */
  readonly resyncFrame: (reason: ResyncReason) => Uint8Array;
  /** Returns the description of the stream for another process. Absent when no subscriber is in another process. */
  readonly feedHead?: () => Omit<FeedHead, 'firstIndex' | 'observes'>;
}

/**
 * The subscribers of one stream. The audience writes the chunks of the ring to them, keeps their connections alive, cuts off
 * subscribers that lag too far, and discards chunks that no subscriber needs. It never adds to the ring.
 */
export class StreamAudience implements ChargedStream, HeartbeatTarget {
  readonly #options: AudienceOptions;
  readonly #subscribers = new Set<Subscriber>();
  readonly #blocked = new Set<Subscriber>();
  /** The feeds through which other processes get this stream. Each feed is also one of the subscribers. */
  readonly #feeds = new Feeds();
  #userCount = 0;
  /** The bytes of events that wait for a commit and are not in the ring yet. */
  gatedBytes = 0;
  readonly backpressure: Backpressure;
  /** Called each time the last user has left. */
  readonly unused = new Listeners<void>();
  /** Called each time the last subscriber has left. */
  readonly empty = new Listeners<void>();
  readonly #clock = new ActivityClock();
  #chargedBytes = 0;

  constructor(options: AudienceOptions) {
    this.#options = options;
    this.backpressure = new Backpressure(options.limitBytes, () => this.#recheck());
  }

  /** The number of subscribers. The subscribers of another process count as one once they have caught up. */
  get size(): number {
    return this.#subscribers.size;
  }

  /** The number of subscribers that are not observers. */
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

  /** Removes a subscriber. Returns whether it was present. */
  remove(subscriber: Subscriber): boolean {
    if (!this.#subscribers.delete(subscriber)) return false;
    this.#blocked.delete(subscriber);
    if (subscriber instanceof Feed) this.#feeds.close(subscriber);
    if (this.#subscribers.size === 0) this.#options.heartbeats?.delete(this);
    if (!subscriber.observes && --this.#userCount === 0) this.unused.tell();
    if (this.#subscribers.size === 0) this.empty.tell();
    return true;
  }

  /** Returns the place of a subscriber, for its connection. `closed` is called after each call of its `close`. */
  subscriptionOf(subscriber: Subscriber, closed?: () => void): Subscription {
    return new AudienceSubscription(this, subscriber, closed);
  }

  /** Continues to write to a subscriber whose connection takes bytes again. */
  goOn(subscriber: Subscriber): void {
    if (!this.has(subscriber)) return;
    subscriber.unblock();
    this.pump(subscriber);
    this.settle();
  }

  /** Makes a subscriber connect again, and ends its subscription. */
  dismiss(subscriber: Subscriber, reason: ResyncReason): void {
    if (!this.has(subscriber)) return;
    this.#cutOff(subscriber, reason);
    this.settle();
  }

  /** Removes a subscriber whose client has left. Idempotent. */
  leave(subscriber: Subscriber): void {
    if (this.remove(subscriber)) this.settle();
    else this.#leaveFeed(subscriber);
  }

  /**
   * Writes the bytes that a subscriber lacks, until its connection refuses. Ends the subscriber after the last event of the
   * stream.
   */
  pump(subscriber: Subscriber): void {
    if (!this.has(subscriber)) return;
    const { ring, isEnded } = this.#options;
    subscriber.pump(ring);
    if (subscriber.isResting) setImmediate(() => subscriber.isResting && this.goOn(subscriber));
    if (subscriber.blocked) this.#blocked.add(subscriber);
    else this.#blocked.delete(subscriber);
    if (isEnded() && subscriber.isCaughtUp(ring)) {
      this.remove(subscriber);
      subscriber.sink.end();
    } else if (subscriber.relay !== undefined) this.#handOver(subscriber, subscriber.relay);
  }

  /** Hands a subscriber that has caught up over to the feed of its process. */
  #handOver(subscriber: Subscriber, relay: Relay): void {
    const { ring, feedHead } = this.#options;
    if (feedHead === undefined || subscriber.blocked || !subscriber.isCaughtUp(ring)) return;
    const { observes } = subscriber;
    const feed =
      this.#feeds.find(relay.link, observes) ??
      this.#openFeed(relay.link, { ...feedHead(), firstIndex: ring.nextIndex, observes });
    this.#feeds.enter(feed, subscriber);
    this.remove(subscriber);
    relay.follow(feed.channel.number, ring.nextIndex);
  }

  #openFeed(link: FeedLink, head: FeedHead): Feed {
    const channel = link.open(head, {
      writable: () => this.goOn(feed),
      press: (isPressed) => {
        feed.isPressed = isPressed;
        this.settle();
      },
    });
    const feed = new Feed(link, channel, head);
    this.#feeds.open(feed);
    this.add(feed);
    return feed;
  }

  #leaveFeed(subscriber: Subscriber): void {
    const emptied = this.#feeds.leave(subscriber);
    if (emptied === undefined) return;
    emptied.channel.close();
    if (this.remove(emptied)) this.settle();
  }

  /** Writes the newest chunk to all subscribers whose connections take bytes. */
  pumpAll(): void {
    for (const subscriber of this.#subscribers) if (!subscriber.blocked) this.pump(subscriber);
    this.settle();
  }

  /** Sends heartbeats to one of `slots` parts of the subscribers. */
  beat(slot: number, slots: number): void {
    let place = 0;
    for (const subscriber of this.#subscribers) {
      if (place++ % slots !== slot || subscriber.blocked || subscriber instanceof Feed) continue;
      subscriber.write(HEARTBEAT);
      if (subscriber.blocked) this.#blocked.add(subscriber);
    }
  }

  /** Cuts off subscribers that lag too far, discards chunks without a reader, and pauses or resumes the producer. */
  settle(): void {
    const { ring, limitBytes, resumeBytes, budget } = this.#options;
    let needed = ring.nextIndex;
    let worstBytes = this.gatedBytes;
    for (const feed of this.#feeds) if (feed.isPressed) worstBytes = limitBytes;
    let ownBytes = 0;
    let furthestBytes = 0;
    const nowMs = this.#blocked.size > 0 ? this.#clock.read() : 0;
    for (const subscriber of this.#blocked) {
      const lagBytes = subscriber.lagBytes(ring);
      // The producer does not wait for observers.
      const isMoving = !subscriber.observes && subscriber.isMoving(nowMs);
      const mostBytes = isMoving ? subscriber.mostLagBytes(limitBytes) : limitBytes;
      // A subscriber without a lag is not cut off, because its connection takes all bytes.
      if (lagBytes > mostBytes && !subscriber.isResting) {
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

  /** While the producer waits for moving subscribers, tests which of their connections take bytes again. */
  #recheck(): void {
    const nowMs = this.#clock.read();
    for (const subscriber of [...this.#blocked]) {
      const isAwaited = !subscriber.observes && !subscriber.isResting && subscriber.isMoving(nowMs);
      if (isAwaited) subscriber.sink.retry?.();
    }
    this.settle();
  }

  /** Yields the subscribers whose connections have not taken all bytes, for the budget. */
  *laggards(): Generator<Laggard> {
    for (const subscriber of this.#blocked) {
      const { ownBytes } = subscriber;
      const behindBytes = ownBytes + subscriber.lagBytes(this.#options.ring);
      const cutOff = () => this.has(subscriber) && this.#cutOff(subscriber, 'slow_subscriber');
      yield { behindBytes, ownBytes, cutOff };
    }
  }

  cutOffAll(reason: ResyncReason): void {
    for (const subscriber of this.#subscribers) this.#cutOff(subscriber, reason);
    this.settle();
  }

  #cutOff(subscriber: Subscriber, reason: ResyncReason): void {
    const { resyncFrame, onCutOff } = this.#options;
    this.remove(subscriber);
    if (!(subscriber instanceof Feed)) onCutOff?.(reason); // the subscribers of a feed are counted in their own process
    subscriber.sink.cutOff(lastPieces(subscriber, resyncFrame(reason)), reason);
  }
}

/**
 * The subscription of one subscriber. It has methods instead of closures, because thousands are
 * open at once.
 */
class AudienceSubscription implements Subscription {
  readonly #audience: StreamAudience;
  readonly #subscriber: Subscriber;
  readonly #closed: (() => void) | undefined;

  constructor(audience: StreamAudience, subscriber: Subscriber, closed: (() => void) | undefined) {
    this.#audience = audience;
    this.#subscriber = subscriber;
    this.#closed = closed;
  }

  probe(): Uint8Array {
    return this.#subscriber.takeByte() ?? HEARTBEAT;
  }

  writable(): void {
    this.#audience.goOn(this.#subscriber);
  }

  cutOff(reason: ResyncReason): void {
    this.#audience.dismiss(this.#subscriber, reason);
  }

  close(): void {
    this.#audience.leave(this.#subscriber);
    this.#closed?.();
  }
}

function* lastPieces(subscriber: Subscriber, resyncFrame: Uint8Array): Generator<Uint8Array> {
  yield* subscriber.restOfFrame();
  yield resyncFrame;
}
