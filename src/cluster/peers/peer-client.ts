/** The connection to one other worker, for this worker's questions and requests. It is made on first use. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { MirroredStream } from '#src/runtime/events/mirrored-stream.ts';
import { IncomingFeeds, type MirrorMaker } from './feeds.ts';
import { FRAME, FrameSocket, type FrameType, isOfFeed } from './frame-socket.ts';

/** Takes the frames that arrive for one exchange. `closed` is called when the worker has ended. */
export interface PeerExchange {
  frame(type: FrameType, bytes: Buffer): void;
  closed(): void;
}

const CONNECT_MS = 10_000;
const RETRY_MS = 10;

export class PeerClient {
  readonly #path: string;
  readonly #secret: Uint8Array;
  readonly #exchanges = new Map<number, PeerExchange>();
  readonly #feeds: IncomingFeeds;
  #socket: FrameSocket | undefined;
  #lastExchange = 0;

  constructor(path: string, secret: Uint8Array, makeMirror: MirrorMaker) {
    this.#path = path;
    this.#secret = secret;
    this.#feeds = new IncomingFeeds((...frame) => this.#socket?.send(...frame), makeMirror);
  }

  /** How many streams of the other worker are mirrored here. */
  get mirrorCount(): number {
    return this.#feeds.count;
  }

  /** Begins an exchange, and returns its number. */
  begin(exchange: PeerExchange): number {
    do this.#lastExchange = (this.#lastExchange + 1) >>> 0;
    while (this.#exchanges.has(this.#lastExchange));
    this.#exchanges.set(this.#lastExchange, exchange);
    return this.#lastExchange;
  }

  send(type: FrameType, exchange: number, ...parts: readonly Uint8Array[]): void {
    this.#connected().send(type, exchange, ...parts);
  }

  /** Returns the mirror of a stream of the other worker; undefined when its feed has ended. */
  mirror(feed: number): MirroredStream | undefined {
    return this.#feeds.mirror(feed);
  }

  /** Forgets an exchange that is over. */
  end(exchange: number): void {
    this.#exchanges.delete(exchange);
  }

  /** Ends the connection, and with it all exchanges. */
  close(): void {
    this.#socket?.close();
  }

  #connected(): FrameSocket {
    if (this.#socket !== undefined) return this.#socket;
    const socket = new FrameSocket(undefined, {
      frame: (type, number, bytes) => {
        if (isOfFeed(type)) this.#feeds.frame(type, number, bytes);
        else this.#exchanges.get(number)?.frame(type, bytes);
      },
      closed: () => {
        if (this.#socket === socket) this.#socket = undefined;
        this.#feeds.clear();
        const exchanges = [...this.#exchanges.values()];
        this.#exchanges.clear();
        for (const exchange of exchanges) exchange.closed();
      },
    });
    this.#socket = socket;
    socket.send(FRAME.hello, 0, this.#secret);
    connectPatiently(this.#path).then(
      (connected) => socket.attach(connected),
      () => socket.close(),
    );
    return socket;
  }
}

/**
 * Resolves with a connection; rejects when there is no such worker. The system refuses connections while too many are waiting,
 * and any process of the same user can bring that about. So connecting is retried for some time.
 */
async function connectPatiently(path: string): Promise<Socket> {
  for (const deadline = performance.now() + CONNECT_MS; ; await wait(RETRY_MS)) {
    const socket = connect(path);
    try {
      await once(socket, 'connect');
      return socket;
    } catch (error) {
      const isFull = (error as NodeJS.ErrnoException).code === 'EAGAIN';
      if (!isFull || performance.now() > deadline) throw error;
    }
  }
}
