/**
 * One end of a connection between two simulated processes, in the interface of `net.Socket` as far as peers use it. Bytes arrive in
 * order, each write after a drawn time and perhaps in pieces. The system keeps them until the process has accepted the connection. Bytes that
 * a process has written arrive although it is killed, and then the connection ends.
 */
import { EventEmitter } from 'node:events';
import { type Life, type World, world } from '../world/world.ts';

const WAY_MS = 0.1;
const SLOW_MS = 30;
const CLOSE_MS = 0.05;

export class LinkedSocket extends EventEmitter {
  destroyed = false;
  writable = true;
  readonly life: Life;
  readonly #world: World = world();
  #other: LinkedSocket | undefined;
  /** Writes that are sent as one. */
  #corked: Buffer[] | undefined;
  #arrivesAtMs = 0;
  /** Bytes that have come before the process reads. */
  #unread: Buffer[] = [];

  constructor(life: Life) {
    super();
    this.life = life;
    this.#world.atEnd(life, () => this.#leave());
    this.on('newListener', (name) => {
      if (name === 'data' && this.#unread.length > 0) this.#world.after(0, () => this.#read(), this.life);
    });
  }

  /** Connects both ends. */
  join(other: LinkedSocket): void {
    this.#other = other;
    other.#other = this;
  }

  cork(): void {
    this.#corked ??= [];
  }

  uncork(): void {
    const parts = this.#corked;
    this.#corked = undefined;
    if (parts !== undefined && parts.length > 0) this.#send(Buffer.concat(parts));
  }

  write(bytes: Uint8Array): boolean {
    if (this.destroyed || !this.writable) return false;
    if (this.#corked === undefined) this.#send(Buffer.from(bytes));
    else this.#corked.push(Buffer.from(bytes));
    return true;
  }

  end(): this {
    this.writable = false;
    return this;
  }

  destroySoon(): void {
    this.destroy();
  }

  destroy(): this {
    if (this.destroyed) return this;
    this.#leave();
    this.#world.after(CLOSE_MS, () => this.emit('close'), this.life);
    return this;
  }

  #send(bytes: Buffer): void {
    const { ofLinks } = this.#world;
    const cut = ofLinks.is(0.1) ? ofLinks.below(bytes.length) : 0;
    for (const piece of [bytes.subarray(0, cut), bytes.subarray(cut)])
      if (piece.length > 0) this.#reach((other) => other.#take(piece));
  }

  #take(piece: Buffer): void {
    this.#unread.push(piece);
    this.#read();
  }

  #read(): void {
    if (this.listenerCount('data') === 0) return;
    for (const piece of this.#unread.splice(0)) this.emit('data', piece);
  }

  /** The process has closed the connection, or was killed. */
  #leave(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.writable = false;
    this.#reach((other) => {
      other.#read();
      other.destroyed = true;
      other.writable = false;
      other.emit('close');
    });
  }

  /** Calls `act` for the other end, after everything that was sent before. */
  #reach(act: (other: LinkedSocket) => void): void {
    const other = this.#other;
    if (other === undefined) return;
    const { ofLinks, nature, nowMs } = this.#world;
    const wayMs = 0.02 + ofLinks.next() * (ofLinks.is(nature.slowLinks) ? SLOW_MS : WAY_MS);
    this.#arrivesAtMs = Math.max(this.#arrivesAtMs, nowMs + wayMs);
    const arrive = () => {
      if (!other.destroyed) act(other);
    };
    this.#world.after(this.#arrivesAtMs - nowMs, arrive, other.life);
  }
}
