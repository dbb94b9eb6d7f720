/**
 * Event streams that one worker sends to another worker. A stream is sent once, whatever the number of its followers there. A
 * feed has a number on its connection. The bytes that are sent but not yet acknowledged are bounded: at the bound, the stream
 * waits as for any lagging subscriber.
 */

import type { ResyncReason } from '#src/contract/wire/shape.ts';
import type { FeedChannel, FeedControls, FeedHead, FeedLink } from '#src/runtime/events/event-sink.ts';
import type { MirroredStream } from '#src/runtime/events/mirrored-stream.ts';
import { numberBytes } from './frame-parts.ts';
import { FRAME, type FrameType } from './frame-socket.ts';

type Send = (type: FrameType, feed: number, ...parts: readonly Uint8Array[]) => void;

/**
 * Creates the local mirror of another worker's stream, fed by a feed. It calls `press` with true when the producer in the sending
 * worker should pause, and with false when it may continue.
 */
export type MirrorMaker = (head: FeedHead, press: (isPressed: boolean) => void) => MirroredStream;

const WINDOW_BYTES = 256 * 1024;
/** Credit is given for this many bytes at once, so that a small chunk does not cost a frame of credit. */
const CREDIT_BYTES = WINDOW_BYTES / 4;

/** The feeds that this worker sends over one connection. */
export class OutgoingFeeds implements FeedLink {
  readonly #send: Send;
  readonly #open = new Map<number, OutgoingFeed>();
  #lastNumber = 0;

  constructor(send: Send) {
    this.#send = send;
  }

  open(head: FeedHead, controls: FeedControls): FeedChannel {
    do this.#lastNumber = (this.#lastNumber + 1) >>> 0;
    while (this.#open.has(this.#lastNumber));
    const number = this.#lastNumber;
    const feed = new OutgoingFeed(number, this.#send, controls, () => this.#open.delete(number));
    this.#open.set(number, feed);
    this.#send(FRAME.feed, number, Buffer.from(JSON.stringify(head)));
    return feed;
  }

  /** Takes a frame of the other worker about a feed. In this worker, the feed may already have ended. */
  frame(type: FrameType, feed: number, bytes: Buffer): void {
    if (type === FRAME.feedCredit) this.#open.get(feed)?.credit(bytes.readUInt32LE(0));
    else if (type === FRAME.feedPress) this.#open.get(feed)?.press(bytes.readUInt32LE(0) === 1);
  }
}

class OutgoingFeed implements FeedChannel {
  readonly number: number;
  readonly #send: Send;
  readonly #controls: FeedControls;
  readonly #forget: () => void;
  #untakenBytes = 0;
  #isOver = false;

  constructor(number: number, send: Send, controls: FeedControls, forget: () => void) {
    this.number = number;
    this.#send = send;
    this.#controls = controls;
    this.#forget = forget;
  }

  write(chunk: Uint8Array): boolean {
    this.#send(FRAME.chunk, this.number, chunk);
    this.#untakenBytes += chunk.byteLength;
    return this.#untakenBytes < WINDOW_BYTES;
  }

  end(): void {
    this.#finish(FRAME.feedEnd);
  }

  cutOff(_last: Iterable<Uint8Array>, reason: ResyncReason): void {
    this.#finish(FRAME.feedCut, Buffer.from(reason));
  }

  close(): void {
    this.#finish(FRAME.feedClose);
  }

  credit(bytes: number): void {
    const wasFull = this.#untakenBytes >= WINDOW_BYTES;
    this.#untakenBytes -= bytes;
    if (wasFull && this.#untakenBytes < WINDOW_BYTES) this.#controls.writable();
  }

  press(isPressed: boolean): void {
    this.#controls.press(isPressed);
  }

  #finish(type: FrameType, ...parts: readonly Uint8Array[]): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#forget();
    this.#send(type, this.number, ...parts);
  }
}

interface IncomingFeed {
  readonly mirror: MirroredStream;
  owedBytes: number;
}

/** The feeds that this worker receives over one connection. */
export class IncomingFeeds {
  readonly #send: Send;
  readonly #makeMirror: MirrorMaker;
  readonly #open = new Map<number, IncomingFeed>();

  constructor(send: Send, makeMirror: MirrorMaker) {
    this.#send = send;
    this.#makeMirror = makeMirror;
  }

  get count(): number {
    return this.#open.size;
  }

  mirror(feed: number): MirroredStream | undefined {
    return this.#open.get(feed)?.mirror;
  }

  /** Takes a frame of the other worker. Frames that are not about feeds are ignored. */
  frame(type: FrameType, number: number, bytes: Buffer): void {
    if (type === FRAME.feed) {
      const press = (isPressed: boolean) =>
        this.#send(FRAME.feedPress, number, numberBytes(isPressed ? 1 : 0));
      const head = JSON.parse(bytes.toString('utf8')) as FeedHead;
      this.#open.set(number, { mirror: this.#makeMirror(head, press), owedBytes: 0 });
      return;
    }
    const feed = this.#open.get(number);
    if (feed === undefined) return;
    if (type === FRAME.chunk) this.#take(number, feed, bytes);
    else {
      this.#open.delete(number);
      if (type === FRAME.feedEnd) feed.mirror.end();
      else if (type === FRAME.feedCut) feed.mirror.cutOff(bytes.toString('utf8') as ResyncReason);
    }
  }

  /** Called when the connection has ended. The exchanges of all followers of these feeds have ended with it. */
  clear(): void {
    this.#open.clear();
  }

  #take(number: number, feed: IncomingFeed, chunk: Buffer): void {
    feed.mirror.take(chunk);
    feed.owedBytes += chunk.byteLength;
    if (feed.owedBytes < CREDIT_BYTES) return;
    this.#send(FRAME.feedCredit, number, numberBytes(feed.owedBytes));
    feed.owedBytes = 0;
  }
}
