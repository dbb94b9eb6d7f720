/**
 * The interfaces through which the exchange sees a request and its response. uWebSockets.js has objects with these interfaces,
 * and so do requests that another worker has forwarded.
 */
import type { RecognizedString } from 'uWebSockets.js';
import type { Relay } from '#src/runtime/events/event-sink.ts';

/** A request. It may be used only while its callback runs. */
export interface WireRequest {
  /** Returns the method in lower case. */
  getMethod(): string;
  getUrl(): string;
  /** Returns the query; undefined when the URL has no question mark. */
  getQuery(): string | undefined;
  getQuery(name: string): string | undefined;
  /** Returns the header; empty when it is missing. */
  getHeader(lowerCaseName: string): string;
  /** Returns a parameter of the path by its index, not decoded; undefined when the route has fewer. */
  getParameter(index: number): string | undefined;
  forEach(visit: (name: string, value: string) => void): void;
}

/** A response. Its members mean the same as in `HttpResponse` of uWebSockets.js. */
export interface WireResponse {
  /** The continuation of an event stream on this connection. Present only for a request that another worker has forwarded. */
  readonly relay?: Relay | undefined;
  cork(write: () => void): unknown;
  writeStatus(status: string): unknown;
  writeHeader(name: string, value: string): unknown;
  /** Returns false when the writer has to wait for the client; the bytes are taken in any case. */
  write(chunk: RecognizedString): boolean;
  /** Returns whether all bytes were taken, and whether the response is over. */
  tryEnd(chunk: RecognizedString, totalBytes: number): [boolean, boolean];
  getWriteOffset(): number;
  end(body?: RecognizedString, closeConnection?: boolean): unknown;
  endWithoutBody(): unknown;
  /** Ends the connection at once. */
  close(): unknown;
  onWritable(handler: (offset: number) => boolean): unknown;
  onAborted(handler: () => void): unknown;
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): unknown;
  pause(): unknown;
  resume(): unknown;
  getRemoteAddressAsText(): ArrayBuffer;
}
