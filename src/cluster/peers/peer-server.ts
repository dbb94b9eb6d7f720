/** Where the other workers connect to, for what they ask of this one. */
import { timingSafeEqual } from 'node:crypto';
import { chmodSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import type { ForwardedHandler, ForwardedHead, IncomingEvents } from './forwarding.ts';
import { numberBytes, splitHead, withHead } from './frame-parts.ts';
import { FRAME, FrameSocket, type FrameType } from './frame-socket.ts';

export interface PeerServerOptions {
  readonly path: string;
  readonly secret: Uint8Array;
  /** Returns the number of the table by which a slot is not at home here; undefined when it is. */
  readonly misplaced: (slot: number) => number | undefined;
  readonly handle: ForwardedHandler;
  /** Answers a question; what it throws is not told. */
  readonly answer: (topic: string, payload: unknown) => unknown;
}

const NOTHING = Buffer.alloc(0);

export class PeerServer implements Disposable {
  readonly #options: PeerServerOptions;
  readonly #server: Server;
  readonly #sockets = new Set<FrameSocket>();

  private constructor(options: PeerServerOptions) {
    this.#options = options;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** Resolves once the others can connect. */
  static async listen(options: PeerServerOptions): Promise<PeerServer> {
    const peers = new PeerServer(options);
    await new Promise<void>((resolve, reject) => {
      peers.#server.once('error', reject);
      peers.#server.listen(options.path, resolve);
    });
    chmodSync(options.path, 0o600);
    return peers;
  }

  #accept(socket: Socket): void {
    const exchanges = new Map<number, IncomingEvents>();
    let isKnown = false;
    const frames = new FrameSocket(socket, {
      frame: (type, exchange, bytes) => {
        if (isKnown) this.#take(frames, exchanges, type, exchange, bytes);
        else if (type === FRAME.hello && this.#isSecret(bytes)) isKnown = true;
        else frames.close();
      },
      closed: () => {
        this.#sockets.delete(frames);
        for (const exchange of exchanges.values()) exchange.aborted();
        exchanges.clear();
      },
    });
    this.#sockets.add(frames);
  }

  #isSecret(bytes: Buffer): boolean {
    const { secret } = this.#options;
    return bytes.byteLength === secret.byteLength && timingSafeEqual(bytes, secret);
  }

  #take(
    frames: FrameSocket,
    exchanges: Map<number, IncomingEvents>,
    type: FrameType,
    exchange: number,
    bytes: Buffer,
  ): void {
    if (type === FRAME.request) this.#begin(frames, exchanges, exchange, bytes);
    else if (type === FRAME.body) exchanges.get(exchange)?.body(bytes);
    else if (type === FRAME.credit) exchanges.get(exchange)?.credit(bytes.readUInt32LE(0));
    else if (type === FRAME.abort) {
      exchanges.get(exchange)?.aborted();
      exchanges.delete(exchange);
    } else if (type === FRAME.ask) void this.#answer(frames, exchange, bytes);
  }

  #begin(frames: FrameSocket, exchanges: Map<number, IncomingEvents>, exchange: number, bytes: Buffer): void {
    const { head, body } = splitHead<ForwardedHead>(bytes);
    const otherTable = this.#options.misplaced(head.slot);
    if (otherTable !== undefined) {
      frames.send(FRAME.misplaced, exchange, numberBytes(otherTable));
      return;
    }
    let isOver = false;
    const send = (type: FrameType, ...parts: Uint8Array[]) => {
      if (!isOver) frames.send(type, exchange, ...parts);
    };
    const conclude = (type: FrameType, ...parts: Uint8Array[]) => {
      send(type, ...parts);
      isOver = true;
      exchanges.delete(exchange);
    };
    const events = this.#options.handle(head, body, {
      whole: (answer, body) => conclude(FRAME.reply, ...withHead(answer, body)),
      head: (answer) => send(FRAME.head, ...withHead(answer, NOTHING)),
      data: (piece) => send(FRAME.data, piece),
      end: (piece) => conclude(FRAME.end, piece),
      cut: () => conclude(FRAME.cut),
      credit: (count) => send(FRAME.credit, numberBytes(count)),
    });
    if (!isOver) exchanges.set(exchange, events);
  }

  async #answer(frames: FrameSocket, exchange: number, bytes: Buffer): Promise<void> {
    const { topic, payload } = JSON.parse(bytes.toString('utf8')) as { topic: string; payload: unknown };
    let value: unknown;
    try {
      value = await this.#options.answer(topic, payload);
    } catch {
      value = undefined;
    }
    frames.send(FRAME.answer, exchange, Buffer.from(JSON.stringify({ value })));
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.close();
  }
}
