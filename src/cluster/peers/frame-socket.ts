/**
 * Frames over a socket between two workers. A frame has a length, a type, the number of its exchange or feed, and
 * bytes. All frames sent in one turn of the event loop are one write.
 */
import type { Socket } from 'node:net';

export const FRAME = {
  /** The secret of the cluster, before anything else. */
  hello: 0,
  /** A request: its head, and its body unless the body follows. */
  request: 1,
  /** A piece of the request's body. */
  body: 2,
  /** The last piece of the request's body, which may be empty. */
  bodyEnd: 3,
  /** The client has left. */
  abort: 4,
  /** A whole answer. */
  reply: 5,
  /** The head of an answer whose body follows. */
  head: 6,
  /** A piece of the answer's body. */
  data: 7,
  /** The last piece of the answer's body, which may be empty. */
  end: 8,
  /** The answer cannot be finished. */
  cut: 9,
  /** Allows this many more bytes of a body. */
  credit: 10,
  /** The table with this number gives the slot of the request to another worker. The request was not carried out. */
  misplaced: 11,
  ask: 12,
  answer: 13,
  /** The answer is an event stream, which continues with the chunks of the feed. */
  follow: 14,
  /** A feed begins. Numbers of feeds and numbers of exchanges are independent. */
  feed: 15,
  /** A chunk of a stream. */
  chunk: 16,
  /** The stream has ended. */
  feedEnd: 17,
  /** The followers of the feed are to connect again. */
  feedCut: 18,
  /** The feed has no followers left. */
  feedClose: 19,
  /** The follower accepts this many more bytes of the feed's chunks. */
  feedCredit: 20,
  /** Whether the producer should pause. */
  feedPress: 21,
} as const;

export type FrameType = (typeof FRAME)[keyof typeof FRAME];

/** Returns whether a frame of this type carries the number of a feed. */
export function isOfFeed(type: FrameType): boolean {
  return type >= FRAME.feed;
}

const LENGTH_BYTES = 4;
export const HEAD_BYTES = LENGTH_BYTES + 1 + 4;
/** Larger than the largest body that a request may have at once. */
export const MAX_FRAME_BYTES = 128 * 1024 * 1024;

export interface FrameEvents {
  /** `bytes` stay valid. */
  frame(type: FrameType, number: number, bytes: Buffer): void;
  /** The other worker is gone, or has sent bytes that are not a frame. Called once. */
  closed(): void;
}

export class FrameSocket {
  /**
   * The size of the largest accepted frame. A larger frame ends the connection before any of its bytes are kept.
   */
  maxFrameBytes = MAX_FRAME_BYTES;
  #socket: Socket | undefined;
  readonly #events: FrameEvents;
  #outgoing: Uint8Array[] = [];
  #incoming: Buffer[] = [];
  #incomingBytes = 0;
  /** The size of the awaited frame in bytes; the size of the length field until the length is known. */
  #awaitedBytes = LENGTH_BYTES;
  #isOpen = true;

  /** Without a socket, frames wait for `attach`. */
  constructor(socket: Socket | undefined, events: FrameEvents) {
    this.#events = events;
    if (socket !== undefined) this.attach(socket);
  }

  /** Attaches the first socket, and sends the waiting frames. */
  attach(socket: Socket): void {
    if (!this.#isOpen) {
      socket.destroy();
      return;
    }
    this.#socket = socket;
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    socket.on('error', () => socket.destroy()); // 'close' follows
    socket.once('close', () => this.close());
    this.#flush();
  }

  send(type: FrameType, number: number, ...parts: readonly Uint8Array[]): void {
    if (!this.#isOpen) return;
    const head = Buffer.allocUnsafe(HEAD_BYTES);
    const length = parts.reduce((total, part) => total + part.byteLength, HEAD_BYTES);
    head.writeUInt32LE(length, 0);
    head[LENGTH_BYTES] = type;
    head.writeUInt32LE(number, LENGTH_BYTES + 1);
    if (this.#outgoing.length === 0) setImmediate(() => this.#flush());
    this.#outgoing.push(head);
    for (const part of parts) if (part.byteLength > 0) this.#outgoing.push(part);
  }

  /** Sends the waiting frames, and ends the connection. Idempotent. */
  close(): void {
    if (!this.#isOpen) return;
    this.#flush();
    this.#isOpen = false;
    this.#socket?.end();
    this.#socket?.destroySoon();
    this.#events.closed();
  }

  #flush(): void {
    const [parts, socket] = [this.#outgoing, this.#socket];
    if (parts.length === 0 || !this.#isOpen || socket === undefined) return;
    this.#outgoing = [];
    socket.cork();
    for (const part of parts) socket.write(part);
    socket.uncork();
  }

  #take(bytes: Buffer): void {
    this.#incoming.push(bytes);
    this.#incomingBytes += bytes.byteLength;
    while (this.#isOpen && this.#incomingBytes >= this.#awaitedBytes) {
      const all = this.#incoming.length === 1 ? this.#incoming[0]! : Buffer.concat(this.#incoming);
      this.#incoming = [all];
      const length = all.readUInt32LE(0);
      if (length < HEAD_BYTES || length > this.maxFrameBytes) {
        this.close();
        return;
      }
      this.#awaitedBytes = length;
      if (all.byteLength < length) return;
      this.#incoming = all.byteLength === length ? [] : [all.subarray(length)];
      this.#incomingBytes -= length;
      this.#awaitedBytes = LENGTH_BYTES;
      const type = all[LENGTH_BYTES] as FrameType;
      this.#events.frame(type, all.readUInt32LE(LENGTH_BYTES + 1), all.subarray(HEAD_BYTES, length));
    }
  }
}
