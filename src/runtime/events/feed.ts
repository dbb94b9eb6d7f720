/**
 * How a stream reaches subscribers that are clients of another process of the same server. Each of them gets its own opening, as a
 * client of this process does. Once a subscriber has caught up, it is handed over to the feed of its process, which sends each
 * chunk once for all of them; `MirroredStream` is the other end.
 *
 * For the stream, a feed is one subscriber that never had to catch up: it lags, is cut off and pauses the producer by the rules for
 * every subscriber. A feed lasts as long as it has a subscriber.
 */
import type { ChunkRing } from './chunk-ring.ts';
import type { FeedChannel, FeedHead, FeedLink } from './event-sink.ts';
import { Subscriber } from './subscriber.ts';

/** The subscribers of one process, as one subscriber. */
export class Feed extends Subscriber {
  readonly link: FeedLink;
  readonly channel: FeedChannel;
  readonly members = new Set<Subscriber>();
  isPressed = false;

  constructor(link: FeedLink, channel: FeedChannel, { firstIndex, observes }: FeedHead) {
    super(channel, observes);
    this.link = link;
    this.channel = channel;
    this.join(firstIndex);
  }

  /**
   * No limit. A feed is given whole chunks, and a single chunk may be larger than the limit of a
   * subscriber. The producer is paused while the feed lags, and bytes that wait for the feed count
   * towards the budget of all streams.
   */
  override mostLagBytes(): number {
    return Number.POSITIVE_INFINITY;
  }

  /** Writes whole chunks, because the other end counts them. */
  override pump(ring: ChunkRing): void {
    while (!this.blocked && this.next < ring.nextIndex) this.write(ring.at(this.next++).bytes);
  }
}

/** The open feeds of one stream. */
export class Feeds implements Iterable<Feed> {
  readonly #open = new Set<Feed>();
  readonly #feedOf = new Map<Subscriber, Feed>();

  /** Returns the feed of a process: the one for observers, or the one for all other subscribers. */
  find(link: FeedLink, observes: boolean): Feed | undefined {
    for (const feed of this.#open) if (feed.link === link && feed.observes === observes) return feed;
    return undefined;
  }

  open(feed: Feed): void {
    this.#open.add(feed);
  }

  /** No further subscriber is handed over to the feed. */
  close(feed: Feed): void {
    this.#open.delete(feed);
  }

  enter(feed: Feed, member: Subscriber): void {
    feed.members.add(member);
    this.#feedOf.set(member, feed);
  }

  /**
   * Removes the subscriber. Returns its feed if no other subscriber is left in it, and undefined
   * otherwise.
   */
  leave(member: Subscriber): Feed | undefined {
    const feed = this.#feedOf.get(member);
    this.#feedOf.delete(member);
    feed?.members.delete(member);
    return feed?.members.size === 0 ? feed : undefined;
  }

  [Symbol.iterator](): Iterator<Feed> {
    return this.#open.values();
  }
}
