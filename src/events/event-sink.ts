/** Where a stream's bytes go: one subscriber's connection, seen from the stream. */
export interface EventSink {
  /** Hands over whole frames. False: taken, but write no more until `Subscription.writable` is called. */
  write(bytes: Uint8Array): boolean;
  /** No more will be written; the connection ends once what was taken is out. */
  end(): void;
}

/** A subscriber's place in a stream, seen from the connection. */
export interface Subscription {
  /** The connection takes bytes again. */
  writable(): void;
  /** The client has left: nothing is written any more. Idempotent. */
  close(): void;
}
