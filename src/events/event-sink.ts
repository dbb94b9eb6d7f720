/**
 * A comment without an empty line after it: that line would end an event, which is empty here, and some clients hand it to
 * their user.
 */
export const HEARTBEAT = Buffer.from(':\n');

/** Where a stream's bytes go: one subscriber's connection, seen from the stream. */
export interface EventSink {
  /** Hands over bytes, of which the connection keeps what it cannot send. False: taken, but write no more until `Subscription.writable` is called. */
  write(bytes: Uint8Array): boolean;
  /** No more will be written; the connection ends once what was taken is out. */
  end(): void;
  /** Ends a connection whose client lags, after these last pieces if the client takes them soon. */
  cutOff(last: readonly Uint8Array[]): void;
}

/** A subscriber's place in a stream, seen from the connection. */
export interface Subscription {
  /** Returns a few bytes that belong next on the connection, to see whether it takes any again: a comment, or of a frame. */
  probe(): Uint8Array;
  /** The connection takes bytes again. */
  writable(): void;
  /** The client has left: nothing is written any more. Idempotent. */
  close(): void;
}
