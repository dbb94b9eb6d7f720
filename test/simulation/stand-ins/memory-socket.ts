/**
 * The server's end of a unix socket in memory, in the interface of `net.Socket` as far as `KernelDoor`, `KernelSocket` and `FrameSender`
 * use it. Bytes arrive in order, each after a drawn time. A side that does not read fills the buffer of the other one.
 */
import { EventEmitter } from 'node:events';
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

export class MemorySocket extends EventEmitter {
  writable = true;
  destroyed = false;
  /** Bytes that were written and that the system has not taken. */
  writableLength = 0;
  readonly #world = world();
  readonly #life: Life;
  readonly #far: FarEnd;
  /** Pieces that have arrived and were not read: bytes, or the end of the connection. */
  readonly #arrived: (Buffer | 'end')[] = [];
  readonly #unsent: { readonly bytes: Buffer; readonly written: (() => void) | undefined }[] = [];
  #inBuffer = 0;
  /** Undefined until somebody has decided. */
  #flows: boolean | undefined;
  #nearAtMs = 0;
  #farAtMs = 0;
  #cut = false;

  /** `life` is the server's. */
  constructor(far: FarEnd, life: Life) {
    super();
    this.#far = far;
    this.#life = life;
    this.on('newListener', (name) => {
      if (name === 'data' && this.#flows === undefined) this.resume(); // as a stream does
    });
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
    return this.writableLength === 0;
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

  #close(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.writable = false;
    this.emit('close');
  }

  /** The far end sends bytes, or closes the connection. */
  arrive(what: Buffer | 'end'): void {
    if (this.#cut) return;
    if (what === 'end') this.#cut = true;
    const { ofKernels, nature, nowMs } = this.#world;
    const mostMs = ofKernels.is(nature.slowKernel) ? SLOW_MS : nature.kernelMs;
    this.#nearAtMs = Math.max(this.#nearAtMs, nowMs + ofKernels.next() * mostMs);
    this.#later(this.#nearAtMs, () => {
      if (this.destroyed) return;
      // A reader that pauses learns of an end when nothing else is unread, as with a real socket.
      if (what === 'end' && this.#arrived.length === 0) return this.#close();
      this.#arrived.push(what);
      this.#flow();
    });
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
