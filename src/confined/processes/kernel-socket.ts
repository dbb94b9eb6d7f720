/**
 * The server's end of the connection to one child process of the kernel host, once the child was
 * admitted (kernel-door.ts). A breach of the protocol ends the connection; otherwise `destroy` or
 * the other side closes it.
 *
 * However fast the other side writes, it gets a bounded part of this thread: after TURN_MS of work
 * the thread turns to other work, and after a slow frame the socket pauses for as long as that
 * frame took.
 */

import type { Socket } from 'node:net';
import { MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import type { PeerProcess } from '#src/base/os/peer-process.ts';
import { parseBoundedJson, parseLargeBoundedJson } from './bounded-json.ts';
import { type Frame, FrameDecoder, FrameError } from './frame-decoder.ts';
import { FrameSender } from './frame-sender.ts';
import { ShapeError } from './json-shape.ts';

const FRAME_LIMIT_BYTES = 64 * 2 ** 20;
const FROM_KERNEL = 0;
const TURN_MS = 4;
const LONG_MS = 25;
/**
 * How many frames are handed over together: `SLICE_FRAMES` at first, and up to `SLICE_LIMIT` when frames are
 * handled quickly.
 */
const SLICE_FRAMES = 16;
const SLICE_LIMIT = 512;

export interface SocketEvents {
  /** Parsed frames, in order. A ShapeError thrown here counts as a breach of the protocol. */
  received(values: readonly unknown[]): void;
  /** The other side broke the protocol and is cut off. `closed` follows. */
  broken(reason: string): void;
  /** The other side did not read the data sent to it, and is cut off. `closed` follows. */
  deaf(): void;
  /**
   * Another error was thrown while a frame was handled, which is a bug of the server. The
   * connection is closed in this case too.
   */
  failed(error: unknown): void;
  /** Called once, when an accepted connection has ended for any reason. */
  closed(): void;
}

/** How the frames of a child are read. */
export interface FrameReading {
  /** Returns the value of a frame. `body` is valid only during the call. */
  readonly parse: (body: Buffer) => unknown;
  /**
   * Returns the value of a large frame in steps, during which `body` is valid. When absent, all
   * frames are parsed at once.
   */
  readonly parseLarge?: (body: Buffer) => Generator<undefined, unknown>;
  /**
   * Prepares the result of `parseLarge`, in steps as well. The prepared object is disposed of after the value was received.
   */
  readonly prepareLarge?: (value: unknown) => Generator<undefined, Disposable>;
  /**
   * Returns whether a value may take long to handle. It is then the last value of its group, so that its duration is known before
   * the next values. Absent when no value takes long.
   */
  readonly mayTakeLong?: (value: unknown) => boolean;
  /** The largest frame, in bytes. */
  readonly limitBytes: number;
}

export const JSON_FRAMES: FrameReading = {
  parse: parseBoundedJson,
  parseLarge: parseLargeBoundedJson,
  limitBytes: FRAME_LIMIT_BYTES,
};

export class KernelSocket {
  readonly #events: SocketEvents;
  readonly #reading: FrameReading;
  readonly #decoder: FrameDecoder;
  #socket: Socket | null = null;
  /** Sends frames to the child, once it is connected. */
  readonly sender = new FrameSender(() => this.#onOverrun());
  #paused = false;
  #held = false;
  /** Frames that were read and are not handled yet. */
  #frames: Generator<Frame, void> | undefined;
  /** Parses the large frame whose parsing has begun. */
  #parsing: Generator<undefined, unknown> | undefined;
  readonly #prepared: Disposable[] = [];
  #sliceFrames = SLICE_FRAMES;
  #spentMs = 0;
  #progress = 0;
  #resting = false;
  #hasClosed = false;
  #destroyed = false;

  constructor(events: SocketEvents, reading: FrameReading = JSON_FRAMES) {
    this.#events = events;
    this.#reading = reading;
    this.#decoder = new FrameDecoder(reading.limitBytes);
  }

  /** Takes the connection of the child, from which `bytes` were already read. Called once. */
  take(socket: Socket, bytes: Buffer): void {
    if (this.#destroyed) {
      socket.destroy();
      return;
    }
    this.#socket = socket;
    this.sender.socket = socket;
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('error', () => {}); // 'close' follows and is handled
    socket.once('close', () => this.#onClose());
    if (bytes.length > 0) this.#read(bytes);
    if (!this.#paused && !this.#held && !this.#resting) socket.resume();
  }

  pause(): void {
    this.#paused = true;
    this.#socket?.pause();
  }

  resume(): void {
    this.#paused = false;
    if (!this.#held && !this.#resting) this.#socket?.resume();
  }

  /**
   * Hands over no more values than those of the present group, or continues. In contrast to a pause, frames that were already read wait, too.
   * Ignored once the connection has closed, because nothing can be waited for then.
   */
  hold(isHeld: boolean): void {
    if (this.#held === isHeld || this.#hasClosed) return;
    this.#held = isHeld;
    if (isHeld) this.#socket?.pause();
    else if (!this.#resting) this.#rest(0);
  }

  /** The number of pieces that were read so far. */
  get progress(): number {
    return this.#progress;
  }

  /** Whether unhandled frames wait, and the socket is not held. */
  get isWorking(): boolean {
    return (this.#frames !== undefined && !this.#held) || this.#resting;
  }

  /**
   * Signals the connected process. Returns false without a process, or when the signal cannot reach the
   * process.
   */
  signalPeer(peers: PeerProcess, signal: number): boolean {
    return this.#socket !== null && peers.signal(this.#socket, signal);
  }

  destroy(): void {
    this.#destroyed = true;
    this.#parsing?.return(undefined);
    this.#socket?.destroy();
  }

  #read(chunk: Buffer): void {
    if (this.#destroyed) return;
    this.#progress++;
    this.#frames = this.#decoder.push(chunk);
    this.#work();
  }

  /** Handles the frames read, slice by slice, until this turn's time is up. The rest follows in the next turn. */
  #work(): void {
    const startedAt = performance.now();
    let ms = 0;
    while (this.#frames !== undefined && ms < TURN_MS && !this.#held && !this.#destroyed) {
      this.#takeSlice(this.#frames);
      const sliceMs = performance.now() - startedAt - ms;
      ms += sliceMs;
      if (this.#parsing !== undefined) continue;
      this.#sliceFrames =
        sliceMs > TURN_MS ? Math.ceil(this.#sliceFrames / 4) : Math.min(this.#sliceFrames * 2, SLICE_LIMIT);
    }
    this.#spentMs += ms;
    if (this.#destroyed || this.#held || (this.#frames === undefined && this.#spentMs < TURN_MS)) return;
    this.#rest(ms);
  }

  /** Hands over the next frames: no more than TURN_MS of parsing, and at most one that may take long. */
  #takeSlice(frames: Generator<Frame, void>): void {
    const values: unknown[] = [];
    const endsAt = performance.now() + TURN_MS;
    const isFull = () =>
      values.length >= this.#sliceFrames ||
      (values.length > 0 && this.#reading.mayTakeLong?.(values[values.length - 1]) === true) ||
      performance.now() > endsAt;
    let wrong: unknown;
    try {
      while (!isFull()) {
        if (this.#parsing === undefined && !this.#beginFrame(frames, values)) break;
        if (this.#parsing === undefined) continue;
        const step = this.#parsing.next();
        if (step.done !== true) break;
        this.#parsing = undefined;
        values.push(step.value);
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

  /** Takes the next frame, or begins to parse a large frame. Returns false when there is no frame. */
  #beginFrame(frames: Generator<Frame, void>, values: unknown[]): boolean {
    const next = frames.next();
    if (next.done) {
      this.#frames = undefined;
      return false;
    }
    const { channel, body } = next.value;
    if (channel !== FROM_KERNEL) throw new FrameError(`a frame on channel ${channel}`);
    if (body.length > MAX_SIZE_AT_ONCE) this.#parsing = this.#readLarge(body);
    if (this.#parsing === undefined) values.push(this.#reading.parse(body));
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

  #rest(ms: number): void {
    this.#spentMs = 0;
    this.#resting = true;
    this.#socket?.pause();
    const goOn = () => {
      this.#resting = false;
      if (!this.#destroyed) this.#work();
      if (this.#resting) return;
      if (this.#hasClosed) this.#events.closed();
      else if (!this.#paused && !this.#held) this.#socket?.resume();
    };
    if (ms > LONG_MS) setTimeout(goOn, ms);
    else setImmediate(goOn);
  }

  #onOverrun(): void {
    if (this.#destroyed) return;
    this.destroy();
    this.#events.deaf();
  }

  /** Reports the end only after all frames were handled. */
  #onClose(): void {
    this.hold(false);
    this.#hasClosed = true;
    if (!this.#resting) this.#events.closed();
  }
}
