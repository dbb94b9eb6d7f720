import type { ResyncReason } from '#src/contract/wire/shape.ts';
import type { Frameable } from './frame.ts';

/**
 * A comment without an empty line after it. An empty line would end an event, and some clients pass
 * the empty event to their user.
 */
export const HEARTBEAT = Buffer.from(':\n');

/** The destination of a stream's bytes: one subscriber's connection, seen from the stream. */
export interface EventSink {
  /** Present when the subscriber is a client of another worker. That worker gets each live event once, for all its clients. */
  readonly relay?: Relay | undefined;
  /**
   * Passes bytes on; the connection keeps those that it cannot send yet. Returns false when it has
   * taken them but wants no more until `Subscription.writable` is called.
   */
  write(bytes: Uint8Array): boolean;
  /**
   * Tries whether the connection takes bytes again, and calls `Subscription.writable` if so: some connections report that they are
   * writable only when a large part of their buffers is empty. Absent when the connection reports it in time.
   */
  retry?(): void;
  /** No more will be written; the connection ends once the bytes taken so far are sent. */
  end(): void;
  /**
   * Ends a connection whose client lags, after these last pieces if the client takes them soon.
   * Each piece is made when it is taken.
   */
  cutOff(last: Iterable<Uint8Array>, reason: ResyncReason): void;
}

/** A subscriber's place in a stream, seen from the connection. */
export interface Subscription {
  /**
   * Returns a few bytes to send next, to see whether the connection takes any again: a comment, or
   * a part of the present frame.
   */
  probe(): Uint8Array;
  /** The connection takes bytes again. */
  writable(): void;
  /**
   * Makes the client connect again, and ends its place: the process of the connection ends, while the process of the
   * stream may continue.
   */
  cutOff(reason: ResyncReason): void;
  /** The client has left: nothing is written any more. Idempotent. */
  close(): void;
}

/** The description of a stream that the other process needs before it gets the first chunk. */
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

/** The connection to another process. All relays to one process have the same. */
export interface FeedLink {
  open(head: FeedHead, controls: FeedControls): FeedChannel;
}

/** The sending end of one feed. Each write is one whole chunk. */
export interface FeedChannel extends EventSink {
  /** The number of the feed on its link. */
  readonly number: number;
  /** The feed has no subscribers left. */
  close(): void;
}

/** The messages of the other process about a feed. */
export interface FeedControls {
  /** The other process takes chunks again. */
  writable(): void;
  /** Whether the producer should pause, because a subscriber there moves but lags. */
  press(isPressed: boolean): void;
}

/** The way to one subscriber that is a client of another process. */
export interface Relay {
  readonly link: FeedLink;
  /**
   * Makes the other process send chunks of the feed to the subscriber, from `nextIndex` on. The subscriber already has the
   * earlier chunks.
   */
  follow(feed: number, nextIndex: number): void;
}
