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
import { parseBoundedJson, parseLargeBoundedJson } from './bounded-json.ts';
import { type Frame, FrameDecoder, FrameError } from './frame-decoder.ts';
import { isRecord, ShapeError } from './json-shape.ts';

const FRAME_LIMIT_BYTES = 64 * 2 ** 20;
const FROM_KERNEL = 0;
/** A larger frame is parsed in steps. */
const MAX_BYTES_AT_ONCE = 256 * 1024;
const TURN_MS = 4;
const LONG_MS = 25;
/** How many frames are taken between two looks at the clock: at first, and when they turn out to be quick. */
const SLICE_FRAMES = 16;
const SLICE_LIMIT = 512;

export interface SocketEvents {
  /** A process has connected. */
  accepted(): void;
  /** Parsed frames, in order, the greeting first. A ShapeError thrown here counts as a broken protocol. */
  received(values: readonly unknown[]): void;
  /** The other side broke the protocol and is cut off. `closed` follows. */
  broken(reason: string): void;
  /** Something else was thrown while a frame was handled, which is a bug of the server. The other side is cut off, too. */
  failed(error: unknown): void;
  /** Called once, when an accepted connection has ended for whatever reason. */
  closed(): void;
}

/** How the frames of a child are read. */
export interface FrameReading {
  /** Returns the value of a frame. `body` is valid only during the call. */
  readonly parse: (body: Buffer) => unknown;
  /** Returns the value of a large frame in steps, during which `body` is valid. Absent: all are parsed at once. */
  readonly parseLarge?: (body: Buffer) => Generator<undefined, unknown>;
  /** Prepares what `parseLarge` has returned, in steps as well. The result is disposed of when the value was received. */
  readonly prepareLarge?: (value: unknown) => Generator<undefined, Disposable>;
  /** The largest frame, in bytes. */
  readonly limitBytes: number;
}

export const JSON_FRAMES: FrameReading = {
  parse: parseBoundedJson,
  parseLarge: parseLargeBoundedJson,
  limitBytes: FRAME_LIMIT_BYTES,
};

/** The parts of one frame. */
export type FrameParts = readonly Uint8Array[];

export class KernelSocket {
  readonly #token: Buffer;
  readonly #events: SocketEvents;
  readonly #reading: FrameReading;
  readonly #decoder: FrameDecoder;
  readonly #server: Server;
  #socket: Socket | null = null;
  /** Frames from the first on that is still being made, and what is to be done between them. */
  readonly #unsent: (FrameParts | Promise<FrameParts> | (() => void))[] = [];
  #greeted = false;
  #paused = false;
  /** What was read and not taken yet. */
  #frames: Generator<Frame, void> | undefined;
  /** Parses the large frame that was begun. */
  #parsing: Generator<undefined, unknown> | undefined;
  readonly #prepared: Disposable[] = [];
  #sliceFrames = SLICE_FRAMES;
  #spentMs = 0;
  #resting = false;
  #hasClosed = false;
  #destroyed = false;

  constructor(token: string, events: SocketEvents, reading: FrameReading = JSON_FRAMES) {
    this.#token = Buffer.from(token);
    this.#events = events;
    this.#reading = reading;
    this.#decoder = new FrameDecoder(reading.limitBytes);
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

  /** Sends the parts of one frame. Ignored while nobody is connected. */
  send(...frame: FrameParts): void {
    this.sendMade(frame);
  }

  /** Sends a frame once it is made, and everything that is sent later after it. Ignored while nobody is connected. */
  sendMade(frame: FrameParts | Promise<FrameParts>): void {
    if (this.#unsent.length === 0 && !(frame instanceof Promise)) this.#write(frame);
    else if (this.#unsent.push(frame) === 1) void this.#writeUnsent();
  }

  /** Calls `act` once all frames were sent that were given before. */
  whenSent(act: () => void): void {
    if (this.#unsent.length === 0) act();
    else this.#unsent.push(act);
  }

  /** Frames are made of plain data, so making one does not fail. */
  async #writeUnsent(): Promise<void> {
    for (let next = this.#unsent[0]; next !== undefined; next = this.#unsent[0]) {
      if (typeof next === 'function') next();
      else this.#write(next instanceof Promise ? await next : next);
      void this.#unsent.shift();
    }
  }

  #write(frame: FrameParts): void {
    const socket = this.#socket;
    if (!socket?.writable) return;
    if (frame.length === 1) {
      socket.write(frame[0]!);
      return;
    }
    socket.cork();
    for (const part of frame) socket.write(part);
    socket.uncork();
  }

  pause(): void {
    this.#paused = true;
    this.#socket?.pause();
  }

  resume(): void {
    this.#paused = false;
    if (!this.#resting) this.#socket?.resume();
  }

  destroy(): void {
    this.#destroyed = true;
    this.#parsing?.return(undefined);
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
    socket.on('error', () => {}); // 'close' follows and is handled
    socket.once('close', () => this.#onClose());
    this.#events.accepted();
    if (this.#paused) socket.pause();
  }

  #read(chunk: Buffer): void {
    if (this.#destroyed) return;
    this.#frames = this.#decoder.push(chunk);
    this.#work();
  }

  /** Handles what was read, slice by slice, until this turn's time is up. The rest follows in the next turn. */
  #work(): void {
    const startedAt = performance.now();
    let ms = 0;
    while (this.#frames !== undefined && ms < TURN_MS && !this.#destroyed) {
      this.#takeSlice(this.#frames);
      const sliceMs = performance.now() - startedAt - ms;
      ms += sliceMs;
      if (this.#parsing !== undefined) continue;
      this.#sliceFrames =
        sliceMs > TURN_MS ? Math.ceil(this.#sliceFrames / 4) : Math.min(this.#sliceFrames * 2, SLICE_LIMIT);
    }
    this.#spentMs += ms;
    if (this.#destroyed || (this.#frames === undefined && this.#spentMs < TURN_MS)) return;
    this.#rest(ms);
  }

  #takeSlice(frames: Generator<Frame, void>): void {
    const values: unknown[] = [];
    let wrong: unknown;
    try {
      while (values.length < this.#sliceFrames) {
        if (this.#parsing === undefined && !this.#beginFrame(frames, values)) break;
        if (this.#parsing === undefined) continue;
        const step = this.#parsing.next();
        if (step.done !== true) break;
        this.#parsing = undefined;
        this.#take(step.value, values);
      }
    } catch (error) {
      wrong = error;
    }
    try {
      if (values.length > 0) this.#events.received(values);
    } catch (error) {
      wrong = error;
    }
    for (const prepared of this.#prepared.splice(0)) prepared[Symbol.dispose]();
    if (wrong === undefined) return;
    this.destroy();
    if (wrong instanceof FrameError || wrong instanceof ShapeError) this.#events.broken(wrong.message);
    else this.#events.failed(wrong);
  }

  /** Takes the next frame, or begins to parse it when it is large. Returns false when there is none. */
  #beginFrame(frames: Generator<Frame, void>, values: unknown[]): boolean {
    const next = frames.next();
    if (next.done) {
      this.#frames = undefined;
      return false;
    }
    const { channel, body } = next.value;
    if (channel !== FROM_KERNEL) throw new FrameError(`a frame on channel ${channel}`);
    if (body.length > MAX_BYTES_AT_ONCE) this.#parsing = this.#readLarge(body);
    if (this.#parsing === undefined) this.#take(this.#reading.parse(body), values);
    return true;
  }

  #readLarge(body: Buffer): Generator<undefined, unknown> | undefined {
    const { parseLarge, prepareLarge } = this.#reading;
    if (parseLarge === undefined || prepareLarge === undefined) return parseLarge?.(body);
    return this.#readPrepared(parseLarge(body), prepareLarge);
  }

  *#readPrepared(
    parsing: Generator<undefined, unknown>,
    prepareLarge: NonNullable<FrameReading['prepareLarge']>,
  ): Generator<undefined, unknown> {
    const value = yield* parsing;
    this.#prepared.push(yield* prepareLarge(value));
    return value;
  }

  #take(value: unknown, values: unknown[]): void {
    if (!this.#greeted) this.#checkGreeting(value);
    values.push(value);
  }

  #rest(ms: number): void {
    this.#spentMs = 0;
    this.#resting = true;
    this.#socket?.pause();
    const goOn = () => {
      this.#resting = false;
      if (!this.#destroyed) this.#work();
      if (this.#resting) return;
      if (this.#hasClosed) this.#events.closed();
      else if (!this.#paused) this.#socket?.resume();
    };
    if (ms > LONG_MS) setTimeout(goOn, ms);
    else setImmediate(goOn);
  }

  /** Reports the end only after the last frames were handled. */
  #onClose(): void {
    this.#hasClosed = true;
    if (!this.#resting) this.#events.closed();
  }

  #checkGreeting(value: unknown): void {
    const shown = Buffer.from(isRecord(value) && typeof value.token === 'string' ? value.token : '');
    if (shown.length !== this.#token.length || !timingSafeEqual(shown, this.#token)) {
      throw new FrameError('a greeting without the right token');
    }
    this.#greeted = true;
  }
}
