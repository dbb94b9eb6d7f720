import type { ResyncReason } from '#src/wire/shape.ts';
import type { Frameable } from './frame.ts';

/**
 * A comment without an empty line after it: that line would end an event, which is empty here, and some clients hand it to
 * their user.
 */
export const HEARTBEAT = Buffer.from(':\n');

/** The destination of a stream's bytes: one subscriber's connection, seen from the stream. */
export interface EventSink {
  /** Present when the subscriber is a client of another process, which gets live events once for all its clients. */
  readonly relay?: Relay | undefined;
  /**
   * Passes bytes on; the connection keeps those it cannot send yet. False: taken, but write no more until
   * `Subscription.writable` is called.
   */
  write(bytes: Uint8Array): boolean;
  /**
   * Tries whether the connection takes bytes again, and calls `Subscription.writable` if so: a connection may say by itself that it is
   * writable only when a large part of its buffers is empty. Absent when the connection says so in time.
   */
  retry?(): void;
  /** No more will be written; the connection ends once the bytes taken so far are sent. */
  end(): void;
  /** Ends a connection whose client lags, after these last pieces if the client takes them soon. They are made as they are taken. */
  cutOff(last: Iterable<Uint8Array>, reason: ResyncReason): void;
}

/** A subscriber's place in a stream, seen from the connection. */
export interface Subscription {
  /** Returns a few bytes that belong next on the connection, to see whether it takes any again: a comment, or of a frame. */
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

/** The way to one subscriber in another process. */
export interface Relay {
  readonly link: FeedLink;
  /** Has the other process send the subscriber the chunks of the feed from `nextIndex` on. It has got all chunks before. */
  follow(feed: number, nextIndex: number): void;
}
