/**
 * How a stream reaches subscribers that are clients of another process of the same server. Each subscriber gets its own opening,
 * like a client of this process. A subscriber that has caught up is handed over to the feed of its process, which sends each
 * chunk once for all its subscribers. `MirroredStream` is the other end.
 *
 * For the stream, a feed is one subscriber that never had to catch up. The rules for lagging, cutting off and pausing the
 * producer are the same as for every subscriber. A feed lasts as long as it has a subscriber.
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
   * A feed has no limit, because it gets whole chunks, and one chunk may be larger than the limit of a subscriber. The producer
   * is paused while the feed lags, and bytes that wait for the feed count towards the budget of all streams.
   */
  override mostLagBytes(): number {
    return Number.POSITIVE_INFINITY;
  }

  /** Writes whole chunks, because the other end counts chunks. */
  override pump(ring: ChunkRing): void {
    while (!this.blocked && this.next < ring.nextIndex) this.write(ring.at(this.next++).bytes);
  }
}

/** The open feeds of one stream. */
export class Feeds implements Iterable<Feed> {
  readonly #open = new Set<Feed>();
  readonly #feedOf = new Map<Subscriber, Feed>();

  /** Returns the feed of a process for observers, or its feed for all other subscribers. */
  find(link: FeedLink, observes: boolean): Feed | undefined {
    for (const feed of this.#open) if (feed.link === link && feed.observes === observes) return feed;
    return undefined;
  }

  open(feed: Feed): void {
    this.#open.add(feed);
  }

  /** Closes the feed, so that no further subscriber is handed over to it. */
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
