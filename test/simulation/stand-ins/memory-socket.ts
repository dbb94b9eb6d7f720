/**
 * The server's end of a unix socket in memory, in the interface of `net.Socket` as far as `KernelDoor`, `KernelSocket` and `FrameSender`
 * use it. Bytes arrive in order, each write after a drawn time. The server reads what has come by then as one piece, or cut somewhere, and
 * the end of the connection may follow the last piece at once. A side that does not read fills the buffer of the other one.
 */
import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { type Life, world } from '../world/world.ts';

/** The end of a connection that is not the server's: it belongs to a kernel. */
export interface FarEnd {
  readonly life: Life;
  /** The server has written these bytes, which arrive later. */
  written(bytes: Buffer): void;
  read(bytes: Buffer): void;
  closed(): void;
}

/** The bytes that the system keeps for a reader before a writer has to wait. */
const BUFFER_BYTES = 208 * 1024;
const TO_KERNEL_MS = 0.3;
/** The longest delay of a kernel, or a machine, that has much to do. */
const SLOW_MS = 15;
const CLOSE_MS = 0.05;
/** The most that an event loop with other work takes until it reads what has come. */
const BUSY_MS = 6;
/** The share of pieces that a reader gets in two parts. */
const CUT = 0.05;

export class MemorySocket extends EventEmitter {
  writable = true;
  destroyed = false;
  /** Bytes that were written and that the system has not taken. */
  writableLength = 0;
  readonly #world = world();
  readonly #life: Life;
  readonly #far: FarEnd;
  /** Bytes that have come to this machine, for the next look of the event loop. */
  readonly #come: Buffer[] = [];
  #hasEnded = false;
  #looks = false;
  /** Pieces for the reader that it has not taken: bytes, or the end of the connection. */
  readonly #arrived: (Buffer | 'end')[] = [];
  readonly #unsent: { readonly bytes: Buffer; readonly written: (() => void) | undefined }[] = [];
  #inBuffer = 0;
  /** Undefined until somebody has decided. */
  #flows: boolean | undefined;
  #nearAtMs = 0;
  #farAtMs = 0;
  #cut = false;
  /** Whether a writer waits until the system has taken everything. */
  #needsDrain = false;
  /** Whether the connection closes then. */
  #ends = false;

  /** `life` is the server's. */
  constructor(far: FarEnd, life: Life) {
    super();
    this.#far = far;
    this.#life = life;
    this.on('newListener', (name) => {
      if (name === 'data' && this.#flows === undefined) this.resume(); // as a stream does
    });
  }

  /** When the far end has read everything that the system has taken for it. */
  get readAtMs(): number {
    return this.#farAtMs;
  }

  cork(): void {}

  uncork(): void {}

  write(chunk: Uint8Array, written?: () => void): boolean {
    if (!this.writable || this.#life.isOver) return false;
    const bytes = Buffer.from(chunk);
    this.#unsent.push({ bytes, written });
    this.#far.written(bytes);
    this.writableLength += bytes.length;
    this.#send();
    this.#needsDrain = this.writableLength > 0;
    return !this.#needsDrain;
  }

  /** Gives the system what it has room for. */
  #send(): void {
    while (this.#unsent.length > 0 && this.#inBuffer < BUFFER_BYTES) {
      const { bytes, written } = this.#unsent.shift()!;
      this.writableLength -= bytes.length;
      this.#inBuffer += bytes.length;
      this.#farAtMs = Math.max(
        this.#farAtMs,
        this.#world.nowMs + this.#world.ofKernels.next() * TO_KERNEL_MS,
      );
      const delayMs = this.#farAtMs - this.#world.nowMs;
      // The bytes are the system's by now: they arrive even if the server ends.
      this.#world.after(delayMs, () => this.#far.read(bytes), this.#far.life);
      this.#later(this.#farAtMs, () => {
        this.#inBuffer -= bytes.length;
        this.#send();
      });
      if (written !== undefined) this.#later(this.#world.nowMs, written);
    }
    if (this.#needsDrain && this.writableLength === 0) {
      this.#needsDrain = false;
      this.emit('drain');
    }
    if (this.#ends && this.writableLength === 0 && !this.destroyed) this.#endFar();
  }

  /** Closes the connection when everything is sent that was written. */
  end(): this {
    this.writable = false;
    this.#ends = true;
    if (this.writableLength === 0 && !this.destroyed) this.#endFar();
    return this;
  }

  #endFar(): void {
    this.#ends = false;
    const delayMs = Math.max(0, this.#farAtMs - this.#world.nowMs) + CLOSE_MS;
    this.#world.after(delayMs, () => this.#far.closed(), this.#far.life);
  }

  /** Hands what comes over to a stream, as fast as that takes it. */
  pipe(to: Duplex): void {
    this.on('data', (bytes: Buffer) => {
      if (to.write(bytes)) return;
      this.pause();
      to.once('drain', () => this.resume());
    });
    this.resume();
  }

  pause(): this {
    this.#flows = false;
    return this;
  }

  resume(): this {
    this.#flows = true;
    if (this.#arrived.length > 0) this.#later(this.#world.nowMs, () => this.#flow());
    return this;
  }

  get readableFlowing(): boolean {
    return this.#flows === true;
  }

  #flow(): void {
    while (this.#flows === true && this.#arrived.length > 0 && !this.destroyed) {
      const next = this.#arrived.shift()!;
      if (next === 'end') this.#close();
      else this.emit('data', next);
    }
  }

  /** As with a real socket, the reader learns of the end after everything that this turn of the event loop has for `setImmediate`. */
  #close(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.writable = false;
    this.#world.immediately(() => this.emit('close'));
  }

  /** The far end sends bytes, or closes the connection. */
  arrive(what: Buffer | 'end'): void {
    if (this.#cut) return;
    if (what === 'end') this.#cut = true;
    const { ofKernels, nature, nowMs } = this.#world;
    const mostMs = ofKernels.is(nature.slowKernel) ? SLOW_MS : nature.kernelMs;
    this.#nearAtMs = Math.max(this.#nearAtMs, nowMs + ofKernels.next() * mostMs);
    this.#later(this.#nearAtMs, () => {
      if (what === 'end') this.#hasEnded = true;
      else this.#come.push(what);
      if (!this.#looks) this.#lookAfter(ofKernels.is(nature.busyLoop) ? ofKernels.next() * BUSY_MS : 0);
    });
  }

  #lookAfter(delayMs: number): void {
    this.#looks = true;
    this.#later(this.#world.nowMs + delayMs, () => {
      this.#looks = false;
      this.#look();
    });
  }

  /** Reads everything that has come, as one piece or its first part, and the end if nothing is left before it. */
  #look(): void {
    if (this.destroyed) return;
    const bytes = Buffer.concat(this.#come.splice(0));
    const { ofKernels } = this.#world;
    const cut = bytes.length > 1 && ofKernels.is(CUT) ? 1 + ofKernels.below(bytes.length - 1) : bytes.length;
    if (cut > 0) this.#arrived.push(bytes.subarray(0, cut));
    this.#flow();
    if (cut < bytes.length) {
      this.#come.push(bytes.subarray(cut));
      this.#lookAfter(0);
    } else if (this.#hasEnded) this.#meetEnd();
  }

  /** A reader that pauses learns of an end when nothing else is unread, as with a real socket. */
  #meetEnd(): void {
    if (this.#arrived.length === 0) this.#close();
    else this.#arrived.push('end');
  }

  destroy(): this {
    if (this.destroyed) return this;
    this.destroyed = true;
    this.writable = false;
    this.#later(this.#world.nowMs + CLOSE_MS, () => this.emit('close'));
    this.#world.after(CLOSE_MS, () => this.#far.closed(), this.#far.life);
    return this;
  }

  #later(atMs: number, act: () => void): void {
    this.#world.after(atMs - this.#world.nowMs, act, this.#life);
  }
}
