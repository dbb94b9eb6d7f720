/**
 * The server's end of one child process of the kernel host. It listens on a path of its own, takes exactly one
 * connection, removes the path at that moment, and believes the other side only after it has shown the token in its
 * first frame. Whatever breaks the protocol ends the connection. Closed by `destroy`, or by the other side.
 *
 * However fast the other side writes, it gets a bounded part of this thread: after TURN_MS of work it waits until others
 * had their turn, and after a frame that took long, for as long as that took.
 */
import { timingSafeEqual } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';
import { parseBoundedJson } from './bounded-json.ts';
import { FrameDecoder, FrameError } from './frame-decoder.ts';
import { isRecord, ShapeError } from './json-shape.ts';

const FRAME_LIMIT_BYTES = 64 * 2 ** 20;
const FROM_KERNEL = 0;
const TURN_MS = 4;
const LONG_MS = 25;

export interface SocketEvents {
  /** Somebody has connected. */
  accepted(): void;
  /** All frames of one read, parsed, in order; the first one of all is the greeting. What it throws as ShapeError is a broken protocol. */
  received(values: readonly unknown[]): void;
  /** The other side broke the protocol and is cut off. `closed` follows. */
  broken(reason: string): void;
  /** Something else was thrown while a frame was taken, which is a mistake of ours. The other side is cut off, too. */
  failed(error: unknown): void;
  /** Once, when a connection that was accepted has ended, however it did. */
  closed(): void;
}

export class KernelSocket {
  readonly #token: Buffer;
  readonly #events: SocketEvents;
  readonly #decoder = new FrameDecoder(FRAME_LIMIT_BYTES);
  readonly #server: Server;
  #socket: Socket | null = null;
  #greeted = false;
  #paused = false;
  #spentMs = 0;
  #destroyed = false;

  constructor(token: string, events: SocketEvents) {
    this.#token = Buffer.from(token);
    this.#events = events;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** Resolves when a child may connect; rejects when the path cannot be used. */
  listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      // Without `exclusive` a cluster worker would ask its primary to listen.
      this.#server.listen({ path, exclusive: true }, () => resolve());
    });
  }

  /** Ignored when nobody is connected (any more). */
  send(frame: Buffer): void {
    if (this.#socket?.writable) this.#socket.write(frame);
  }

  pause(): void {
    this.#paused = true;
    this.#socket?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#socket?.resume();
  }

  destroy(): void {
    this.#destroyed = true;
    if (this.#server.listening) this.#server.close();
    this.#socket?.destroy();
  }

  #accept(socket: Socket): void {
    if (this.#socket !== null || this.#destroyed) {
      socket.destroy();
      return;
    }
    this.#server.close(); // also removes the path
    this.#socket = socket;
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('error', () => {}); // 'close' follows and says all there is to say
    socket.once('close', () => this.#events.closed());
    this.#events.accepted();
    if (this.#paused) socket.pause();
  }

  #read(chunk: Buffer): void {
    if (this.#destroyed) return;
    const startedAt = performance.now();
    const values: unknown[] = [];
    let wrong: unknown;
    try {
      for (const { channel, body } of this.#decoder.push(chunk)) {
        if (channel !== FROM_KERNEL) throw new FrameError(`a frame on channel ${channel}`);
        const value = parseBoundedJson(body);
        if (!this.#greeted) this.#checkGreeting(value);
        values.push(value);
      }
    } catch (error) {
      wrong = error;
    }
    try {
      if (values.length > 0) this.#events.received(values);
    } catch (error) {
      wrong = error;
    }
    if (wrong === undefined) {
      this.#spend(performance.now() - startedAt);
      return;
    }
    this.destroy();
    if (wrong instanceof FrameError || wrong instanceof ShapeError) this.#events.broken(wrong.message);
    else this.#events.failed(wrong);
  }

  #spend(ms: number): void {
    this.#spentMs += ms;
    if (this.#spentMs < TURN_MS || this.#destroyed) return;
    this.#spentMs = 0;
    this.#socket?.pause();
    const goOn = () => {
      if (!this.#paused) this.#socket?.resume();
    };
    if (ms > LONG_MS) setTimeout(goOn, ms);
    else setImmediate(goOn);
  }

  #checkGreeting(value: unknown): void {
    const shown = Buffer.from(isRecord(value) && typeof value.token === 'string' ? value.token : '');
    if (shown.length !== this.#token.length || !timingSafeEqual(shown, this.#token)) {
      throw new FrameError('a greeting without the right token');
    }
    this.#greeted = true;
  }
}
