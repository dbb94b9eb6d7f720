import type { ResyncReason } from '#src/contract/wire/shape.ts';
import type { Frameable } from './frame.ts';

/**
 * A comment without an empty line after it. An empty line would end an event, and some clients would report an empty event.
 */
export const HEARTBEAT = Buffer.from(':\n');

/** The destination of a stream's bytes: one subscriber's connection, seen from the stream. */
export interface EventSink {
  /** Present when the subscriber is a client of another worker. That worker receives each live event once for all its clients. */
  readonly relay?: Relay | undefined;
  /**
   * Passes bytes on. The connection takes all bytes, and keeps those that it cannot send yet. Returns false when the connection
   * wants no more bytes until it calls `Subscription.writable`.
   */
  write(bytes: Uint8Array): boolean;
  /**
   * Tests whether the connection takes bytes again, and if so calls `Subscription.writable`. Some connections report that they
   * are writable only when a large part of their buffers is empty. Absent for a connection that reports this in time.
   */
  retry?(): void;
  /** Ends the connection once all bytes that it has taken are sent. */
  end(): void;
  /**
   * Ends a connection whose client lags. First these last pieces are sent, if the client takes them soon. Each piece is made when
   * it is taken.
   */
  cutOff(last: Iterable<Uint8Array>, reason: ResyncReason): void;
}

/** A subscriber's place in a stream, seen from the connection. */
export interface Subscription {
  /**
   * Returns a few bytes to send next: a comment, or a part of the present frame. They test whether the connection takes bytes
   * again.
   */
  probe(): Uint8Array;
  /** Called when the connection takes bytes again. */
  writable(): void;
  /**
   * Makes the client connect again, and ends the subscription. Called when the process of the connection ends; the process of the
   * stream may continue.
   */
  cutOff(reason: ResyncReason): void;
  /** Called when the client has left. Nothing is written after that. Idempotent. */
  close(): void;
}

/** The description of a stream that another process needs before it receives the first chunk. */
export interface FeedHead {
  /** The index of the first chunk in the ring of the stream. */
  readonly firstIndex: number;
  /** The id of the last event before that chunk. */
  readonly lastId: string;
  /** The events that tell a subscriber to connect again. */
  readonly resync: Readonly<Record<ResyncReason, Frameable>>;
  /** Whether all subscribers of the feed are observers. */
  readonly observes: boolean;
}

/** The connection to another process. All relays to the same process share it. */
export interface FeedLink {
  open(head: FeedHead, controls: FeedControls): FeedChannel;
}

/** The sending end of one feed. Each write is one whole chunk. */
export interface FeedChannel extends EventSink {
  /** The number of the feed on its link. */
  readonly number: number;
  /** Called when the feed has no subscribers left. */
  close(): void;
}

/** The messages of the other process about a feed. */
export interface FeedControls {
  /** Called when the other process takes chunks again. */
  writable(): void;
  /** Tells whether the producer should pause, because a subscriber in the other process moves but lags. */
  press(isPressed: boolean): void;
}

/** The way to one subscriber that is a client of another process. */
export interface Relay {
  readonly link: FeedLink;
  /**
   * Makes the other process send the chunks of the feed from `nextIndex` on to the subscriber, which already has the earlier
   * chunks.
   */
  follow(feed: number, nextIndex: number): void;
}
