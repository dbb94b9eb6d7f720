/**
 * Accepts the connections of the other workers, for their questions and requests. Any process of the same user may reach the
 * socket, so a connection is trusted only after it has sent the secret of the cluster. Until then the connection gets no memory,
 * little time, and one of few places. Where the system identifies the process, one that is not a worker of the same primary is
 * refused at once.
 */

import { timingSafeEqual } from 'node:crypto';
import { chmodSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { unawaited } from '#src/base/async/unawaited.ts';
import { loadPeerProcess, type PeerProcess, parentOf } from '#src/base/os/peer-process.ts';
import { OutgoingFeeds } from './feeds.ts';
import type { ForwardedHandler, ForwardedHead, IncomingEvents } from './forwarding.ts';
import { type FeedPosition, numberBytes, splitHead, withHead } from './frame-parts.ts';
import { FRAME, FrameSocket, type FrameType, HEAD_BYTES, isOfFeed, MAX_FRAME_BYTES } from './frame-socket.ts';

export interface PeerServerOptions {
  readonly path: string;
  readonly secret: Uint8Array;
  /**
   * Returns undefined when the slot is at home here, or else the number of the table that assigns
   * it to another worker.
   */
  readonly misplaced: (slot: number) => number | undefined;
  readonly handle: ForwardedHandler;
  /** Answers a question. The asking worker does not learn the reason of an error that this function throws. */
  readonly answer: (topic: string, payload: unknown) => unknown;
  /** Called with errors that `answer` throws. */
  readonly onFault: (topic: string, error: unknown) => void;
}

/** The answer to another worker's question. */
export interface PeerAnswer {
  readonly value?: unknown;
  readonly hasFailed?: boolean;
}

const NOTHING = Buffer.alloc(0);
/** A worker sends the secret as soon as it has connected, so only a worker that cannot run needs longer. */
const GREETING_MS = 10_000;
/** At most, all workers of the server connect at the same moment. A server has no more workers than this. */
const MAX_UNGREETED = 256;

/** The connection of one other worker. */
interface Peer {
  readonly frames: FrameSocket;
  readonly exchanges: Map<number, IncomingEvents>;
  readonly feeds: OutgoingFeeds;
}

export class PeerServer implements Disposable {
  readonly #options: PeerServerOptions;
  readonly #server: Server;
  readonly #peers: PeerProcess;
  readonly #sockets = new Set<FrameSocket>();
  /** Connections that have not shown the secret yet, the oldest first. */
  readonly #ungreeted = new Set<FrameSocket>();

  private constructor(options: PeerServerOptions, peers: PeerProcess) {
    this.#options = options;
    this.#peers = peers;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** Resolves once the other workers can connect. */
  static async listen(options: PeerServerOptions): Promise<PeerServer> {
    const peers = new PeerServer(options, await loadPeerProcess());
    await new Promise<void>((resolve, reject) => {
      peers.#server.once('error', reject);
      // Without `exclusive` the primary would accept the connections, and keep those of dead workers.
      peers.#server.listen({ path: options.path, exclusive: true }, resolve);
    });
    chmodSync(options.path, 0o600);
    return peers;
  }

  #accept(socket: Socket): void {
    if (this.#isStranger(socket)) {
      socket.destroy();
      return;
    }
    const exchanges = new Map<number, IncomingEvents>();
    let isKnown = false;
    const frames = new FrameSocket(socket, {
      frame: (type, number, bytes) => {
        if (isKnown) this.#take(peer, type, number, bytes);
        else if (type === FRAME.hello && this.#isSecret(bytes)) {
          isKnown = true;
          frames.maxFrameBytes = MAX_FRAME_BYTES;
          clearTimeout(patience);
          this.#ungreeted.delete(frames);
        } else frames.close();
      },
      closed: () => {
        clearTimeout(patience);
        this.#ungreeted.delete(frames);
        this.#sockets.delete(frames);
        for (const exchange of exchanges.values()) exchange.aborted();
        exchanges.clear();
      },
    });
    const feeds = new OutgoingFeeds((...frame) => frames.send(...frame));
    const peer = { frames, exchanges, feeds };
    frames.maxFrameBytes = HEAD_BYTES + this.#options.secret.byteLength;
    const patience = setTimeout(() => frames.close(), GREETING_MS).unref();
    this.#sockets.add(frames);
    this.#ungreeted.add(frames);
    const [oldest] = this.#ungreeted;
    if (this.#ungreeted.size > MAX_UNGREETED) oldest?.close();
  }

  /** Returns whether the connected process is certainly not a worker: all workers have the same parent. */
  #isStranger(socket: Socket): boolean {
    const pid = this.#peers.pid(socket);
    if (pid === undefined || pid === process.pid) return false;
    const parent = parentOf(pid);
    return parent !== undefined && parent !== process.ppid;
  }

  #isSecret(bytes: Buffer): boolean {
    const { secret } = this.#options;
    return bytes.byteLength === secret.byteLength && timingSafeEqual(bytes, secret);
  }

  #take(peer: Peer, type: FrameType, number: number, bytes: Buffer): void {
    const { frames, exchanges, feeds } = peer;
    if (isOfFeed(type)) feeds.frame(type, number, bytes);
    else if (type === FRAME.request) this.#begin(peer, number, bytes);
    else if (type === FRAME.body || type === FRAME.bodyEnd)
      exchanges.get(number)?.body(bytes, type === FRAME.bodyEnd);
    else if (type === FRAME.credit) exchanges.get(number)?.credit(bytes.readUInt32LE(0));
    else if (type === FRAME.abort) {
      exchanges.get(number)?.aborted();
      exchanges.delete(number);
    } else if (type === FRAME.ask)
      unawaited(this.#answer(frames, number, bytes), 'peer-server: the answer to a question');
  }

  #begin({ frames, exchanges, feeds }: Peer, exchange: number, bytes: Buffer): void {
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
      relay: {
        link: feeds,
        follow: (feed, nextIndex) => {
          const position: FeedPosition = { feed, nextIndex };
          send(FRAME.follow, ...withHead(position, NOTHING));
        },
      },
    });
    if (!isOver) exchanges.set(exchange, events);
  }

  async #answer(frames: FrameSocket, exchange: number, bytes: Buffer): Promise<void> {
    const { topic, payload } = JSON.parse(bytes.toString('utf8')) as { topic: string; payload: unknown };
    let answer: PeerAnswer;
    try {
      answer = { value: await this.#options.answer(topic, payload) };
    } catch (error) {
      answer = { hasFailed: true };
      this.#options.onFault(topic, error);
    }
    frames.send(FRAME.answer, exchange, Buffer.from(JSON.stringify(answer)));
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.close();
  }
}
