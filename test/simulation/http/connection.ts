/**
 * One request of a client, and the response of the server to it. Both sides learn what the other one does after a drawn time, in
 * order. The system keeps a bounded number of bytes for a client that does not read, and then the server has to wait.
 */
import { type Life, OUTSIDE, type World, world } from '../world/world.ts';
import type { SimulatedServer } from './uws.ts';

export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly query?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/** What a client sees of a response. One of `ended`, `broken` and `refused` is the last call. */
export interface ResponseReader {
  head(status: number): void;
  chunk(bytes: Buffer): void;
  ended(): void;
  /** The connection has ended within the request or its response. */
  broken(): void;
  /** Nobody listens. */
  refused(): void;
}

/** The server's end of a connection. */
export interface ServerEnd {
  clientLeft(): void;
  /** The system has room again. */
  writable(): void;
}

const BUFFERS = [4 * 1024, 64 * 1024, 256 * 1024];
const LONG_WAY_MS = 20;
const SHORT_WAY_MS = 0.05;

export class Connection {
  readonly head: RequestHead;
  readonly body: Buffer;
  readonly life: Life;
  readonly #world: World = world();
  readonly #reader: ResponseReader;
  /** Bytes that the server has written and the client has not read. */
  #unread = 0;
  /** Whether the server has to wait until the client has read. */
  #isFull = false;
  readonly #bufferBytes: number;
  /** Pieces that have arrived while the client does not read. */
  readonly #arrived: (() => void)[] = [];
  #arrivesAtMs = 0;
  #isOver = false;
  #reads = true;
  #end: ServerEnd | undefined;

  constructor(life: Life, head: RequestHead, body: Buffer, reader: ResponseReader) {
    this.head = head;
    this.body = body;
    this.life = life;
    this.#reader = reader;
    this.#bufferBytes = this.#world.ofNet.pick(BUFFERS);
  }

  /** Whether the client has left, or has got everything. */
  get isOver(): boolean {
    return this.#isOver;
  }

  send(server: SimulatedServer | undefined): void {
    if (server === undefined || this.life.isOver) {
      this.#world.after(SHORT_WAY_MS, () => this.#conclude(() => this.#reader.refused()), OUTSIDE);
      return;
    }
    const take = () => {
      if (!server.isListening)
        this.#world.after(SHORT_WAY_MS, () => this.#conclude(() => this.#reader.refused()), OUTSIDE);
      else if (!this.#isOver) this.#end = server.receive(this);
    };
    this.#world.after(this.#wayMs(), take, this.life);
  }

  /** The client leaves; the server learns of it later. */
  leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#world.after(this.#wayMs(), () => this.#end?.clientLeft(), this.life);
  }

  /** The process of the server has ended: bytes that are on the way still arrive. */
  serverDied(): void {
    this.#deliver(() => this.#conclude(() => this.#reader.broken()));
  }

  /** A client that does not read lets the buffers fill. */
  setReading(reads: boolean): void {
    this.#reads = reads;
    if (!reads) return;
    for (const act of this.#arrived.splice(0)) if (!this.#isOver) act(); // a client that has left gets nothing more
  }

  // ── The server's side ──────────────────────────────────────────────────────────────────────────────────────────────────

  sendHead(status: number): void {
    if (this.life.isOver) return; // the server was killed within this turn, and says nothing any more
    this.#world.atReply?.(this.head.method, this.head.path);
    this.#deliver(() => this.#reader.head(status));
  }

  /** Returns whether the system has taken all bytes; if not, `writable` follows. The bytes arrive in any case. */
  sendChunk(bytes: Buffer): boolean {
    if (this.life.isOver) return true;
    this.#world.atReply?.(this.head.method, this.head.path);
    this.#unread += bytes.length;
    this.#deliver(() => {
      this.#reader.chunk(bytes);
      this.#took(bytes.length);
    });
    if (this.#unread > this.#bufferBytes) this.#isFull = true;
    return !this.#isFull;
  }

  sendEnd(): void {
    if (this.life.isOver) return;
    this.#deliver(() => this.#conclude(() => this.#reader.ended()));
  }

  /** The server has closed the connection. */
  cut(): void {
    if (this.life.isOver) return;
    this.serverDied();
  }

  #took(bytes: number): void {
    this.#unread -= bytes;
    // The system reports room when a third of its buffer is free.
    if (!this.#isFull || this.#unread > (this.#bufferBytes * 2) / 3) return;
    this.#isFull = false;
    this.#world.after(this.#wayMs(), () => this.#end?.writable(), this.life);
  }

  #conclude(act: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    act();
  }

  #deliver(act: () => void): void {
    this.#arrivesAtMs = Math.max(this.#arrivesAtMs, this.#world.nowMs + this.#wayMs());
    const arrive = () => {
      if (this.#isOver) return;
      if (this.#reads && this.#arrived.length === 0) act();
      else this.#arrived.push(act);
    };
    this.#world.after(this.#arrivesAtMs - this.#world.nowMs, arrive, OUTSIDE);
  }

  #wayMs(): number {
    const { ofNet, nature } = this.#world;
    return SHORT_WAY_MS + ofNet.next() * (ofNet.is(nature.slowNet) ? LONG_WAY_MS : nature.netMs);
  }
}
