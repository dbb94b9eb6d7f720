/**
 * A stream of another process, for subscribers that are clients of this process. The other process sends each subscriber its
 * opening. Live events arrive over one feed and are distributed here by the usual rules of a stream.
 */

import type { ResyncReason } from '#src/contract/wire/shape.ts';
import { StreamAudience } from './audience.ts';
import { ChunkRing } from './chunk-ring.ts';
import type { EventSink, FeedHead, Subscription } from './event-sink.ts';
import { encodeEventFrame, lastEventIdOf, PIECE_BYTES } from './frame.ts';
import type { ProcessStreams } from './process-streams.ts';
import { Subscriber } from './subscriber.ts';

export class MirroredStream {
  readonly #observes: boolean;
  readonly #ring: ChunkRing;
  readonly #audience: StreamAudience;
  #lastId: string;
  #isEnded = false;

  /** `press` asks the process of the stream to pause the producer, or to let it continue. */
  constructor(head: FeedHead, streams: ProcessStreams, press: (isPressed: boolean) => void) {
    this.#observes = head.observes;
    this.#lastId = head.lastId;
    this.#ring = new ChunkRing(head.firstIndex);
    this.#audience = new StreamAudience({
      ...streams,
      ring: this.#ring,
      resumeBytes: 0, // the original stream itself replays missed events
      isEnded: () => this.#isEnded,
      resyncFrame: (reason) => Buffer.from(encodeEventFrame(`${this.#lastId}.0`, head.resync[reason])),
    });
    this.#audience.backpressure.listeners.add(press);
  }

  /** The number of followers in this process. */
  get subscriberCount(): number {
    return this.#audience.size;
  }

  /**
   * Gives the sink every chunk from `nextIndex` on. Some of these chunks may still be on their way. Calls `closed` each time the
   * connection reports that the client has left.
   */
  subscribe(sink: EventSink, nextIndex: number, closed?: () => void): Subscription {
    const subscriber = new Subscriber(sink, this.#observes);
    subscriber.join(nextIndex);
    this.#audience.add(subscriber);
    this.#audience.pump(subscriber);
    return this.#audience.subscriptionOf(subscriber, closed);
  }

  /** Takes the next chunk. */
  take(chunk: Buffer): void {
    this.#lastId = lastEventIdOf(chunk);
    // A small chunk is copied. Otherwise it would keep all bytes that arrived with it in memory.
    this.#ring.push(chunk.byteLength > PIECE_BYTES ? chunk : Buffer.from(chunk));
    this.#audience.pumpAll();
  }

  /** Accepts no more chunks. Each subscriber leaves once it has the last chunk. */
  end(): void {
    this.#isEnded = true;
    this.#audience.pumpAll();
  }

  /** Makes all subscribers connect again, and ends their subscriptions. */
  cutOff(reason: ResyncReason): void {
    this.#audience.cutOffAll(reason);
  }
}
