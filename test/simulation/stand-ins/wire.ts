/**
 * One end of a TCP connection with TLS between machines, as a stream of Node.js, so that pauses, pipes, half-open ends and full buffers are
 * those of the real class. Bytes arrive in order, after drawn times, as one piece or in several. A route between two machines may be silent
 * for a while: bytes and connections wait, and arrive afterwards. A machine may be gone without a word.
 */
import type { X509Certificate } from 'node:crypto';
import { Duplex } from 'node:stream';
import { noteDoom } from '../nodes/kernels-of-nodes.ts';
import { type Life, OUTSIDE, type World, world } from '../world/world.ts';

export interface Identity {
  readonly certificate: X509Certificate | undefined;
  /** The certificate of the authority, which a server shows, too. */
  readonly issuer: X509Certificate | undefined;
  readonly trusts: (other: X509Certificate | undefined) => boolean;
}

/** A process that listens at a port. */
export interface WireListener {
  readonly life: Life;
  accept(socket: WireSocket): void;
}

type Direction = 'toServer' | 'toNode';
/** A piece that one end receives: bytes, the end of the stream, or the news that the other end is gone. */
type Parcel = Buffer | 'end' | 'reset';

/** The bytes that the systems of both machines keep before a writer has to wait. */
const BUFFER_BYTES = 512 * 1024;
const HIGH_WATER_BYTES = 16 * 1024;
const SLOW_MS = 40;
/** The share of pieces that a reader gets in two parts, and of reads that begin late and take several pieces at once. */
const CUT = 0.05;
const LATE_READS = 0.1;
const LATE_READ_MS = 6;
/** How long the system waits for the sign of life of a machine that is gone (`tune` in `protocol.ts`). */
const KEEP_ALIVE_MS = 25_000;
const FIRST_PORT = 40_000;
/** The message by which the server kills a kernel. */
const SIGNAL = '{"op":"signal"';
const STOP = '"stop-kernel"';
const OF_KERNEL = /^\{"op":"kernel","id":"(\w+)"/;
const DOOM = /^\{"op":"signal","id":"(\w+)","signal":9\}$/;

/** The way between the server and one node. */
export class Route {
  readonly silentUntilMs: Record<Direction, number> = { toServer: 0, toNode: 0 };
  /** Whether the machine of the node has no power. */
  isDark = false;
  readonly wires = new Set<Wire>();
}

const routes = new WeakMap<World, Map<string, Route>>();
const listeners = new WeakMap<World, Map<number, WireListener>>();
const ports = new WeakMap<World, number>();

/** Called with a connection, and the first bytes that were written to it, when the other side has answered them. */
export const answered = new WeakMap<World, (socket: WireSocket, first: Buffer) => void>();

/** Returns the way to the node whose modules are in this graph. */
export function routeOf(of: World, graph: string): Route {
  const all = routes.get(of) ?? new Map<string, Route>();
  routes.set(of, all);
  const route = all.get(graph) ?? new Route();
  all.set(graph, route);
  return route;
}

/** The processes that listen, by their ports. */
export function listenersOf(of: World): Map<number, WireListener> {
  const all = listeners.get(of) ?? new Map<number, WireListener>();
  listeners.set(of, all);
  return all;
}

/** A connection: its two ends, and what is on the way between them. */
export class Wire {
  readonly route: Route;
  client: WireSocket | undefined;
  server: WireSocket | undefined;
  readonly #world: World;
  readonly #underway: Record<Direction, { readonly atMs: number; readonly act: () => void }[]> = {
    toServer: [],
    toNode: [],
  };

  constructor(of: World, route: Route) {
    this.#world = of;
    this.route = route;
    route.wires.add(this);
  }

  /** Calls `arrive` at the other machine, after everything that was sent before. */
  send(direction: Direction, arrive: () => void): void {
    const { ofWires, nature, nowMs } = this.#world;
    const queue = this.#underway[direction];
    const wayMs = 0.05 + ofWires.next() * (ofWires.is(nature.slowWires) ? SLOW_MS : nature.wireMs);
    const atMs = Math.max(queue.at(-1)?.atMs ?? 0, nowMs + wayMs);
    queue.push({ atMs, act: arrive });
    if (queue.length === 1) this.#wait(direction);
  }

  #wait(direction: Direction): void {
    const [next] = this.#underway[direction];
    if (next === undefined) return;
    const silentMs = this.route.silentUntilMs[direction] - this.#world.nowMs;
    const delayMs = Math.max(next.atMs - this.#world.nowMs, silentMs > 0 ? silentMs + 0.1 : 0);
    this.#world.after(delayMs, () => this.#arrive(direction), OUTSIDE);
  }

  #arrive(direction: Direction): void {
    if (this.route.silentUntilMs[direction] > this.#world.nowMs) {
      this.#wait(direction);
      return;
    }
    const next = this.#underway[direction].shift();
    if (!this.route.isDark) next?.act();
    this.#wait(direction);
  }
}

export class WireSocket extends Duplex {
  readonly life: Life;
  readonly remoteAddress: string;
  readonly remotePort: number;
  /** Whether the other side has a certificate of the trusted authority. */
  authorized = false;
  readonly #world: World = world();
  readonly #wire: Wire;
  readonly #direction: Direction;
  #identity: Identity | undefined;
  #peer: Identity | undefined;
  /** Whether both sides have shown their certificates. */
  #isOpen = false;
  /** Whether the system of this end has closed it. */
  #isGone = false;
  #hasEnded = false;
  #unwritten: (() => void)[] = [];
  #written: (() => void) | undefined;
  #inFlight = 0;
  readonly #come: Buffer[] = [];
  #comeEnd = false;
  #looks = false;
  #wants = false;
  #idle: NodeJS.Timeout | undefined;
  #first: Buffer | undefined;
  #isAnswered = false;
  #secured: (() => void) | undefined;

  private constructor(life: Life, wire: Wire, direction: Direction, port: number) {
    super({ allowHalfOpen: false, highWaterMark: HIGH_WATER_BYTES });
    this.life = life;
    this.#wire = wire;
    this.#direction = direction;
    this.remoteAddress = '127.0.0.1';
    this.remotePort = port;
    this.#world.atEnd(life, () => this.#leave());
  }

  /** Connects the process that calls with the one that listens at `port`. */
  static dial(port: number, identity: Identity, isStrict: boolean): WireSocket {
    const now = world();
    const { life } = now;
    const wire = new Wire(now, life.graph === undefined ? new Route() : routeOf(now, life.graph));
    const client = new WireSocket(life, wire, 'toServer', port);
    client.#identity = identity;
    wire.client = client;
    wire.send('toServer', () => {
      const listener = listenersOf(now).get(port);
      if (listener === undefined || listener.life.isOver) {
        wire.send('toNode', () => client.#soon(() => client.destroy(refusal(port))));
        return;
      }
      const number = ports.get(now) ?? FIRST_PORT;
      ports.set(now, number + 1);
      const server = new WireSocket(listener.life, wire, 'toNode', number);
      wire.server = server;
      if (client.#isGone) server.#take('end');
      server.#soon(() => listener.accept(server));
    });
    client.#secured = () => {
      client.authorized = identity.trusts(client.#peer?.certificate);
      if (isStrict && !client.authorized) client.destroy(new Error('unable to verify the certificate'));
      else client.emit('secureConnect');
    };
    return client;
  }

  /** The server shows its certificate. `secured` is called once the other side has shown its own. */
  greet(identity: Identity, secured: () => void): void {
    this.#identity = identity;
    this.#secured = () => {
      this.authorized = identity.trusts(this.#peer?.certificate);
      secured();
    };
    this.#post(() => {
      const { client } = this.#wire;
      if (client === undefined || client.#isGone) return;
      client.#soon(() => {
        client.#post(() => this.#soon(() => this.#open(client.#identity)));
        client.#open(identity);
      });
    });
  }

  #open(peer: Identity | undefined): void {
    if (this.destroyed || this.#isOpen) return;
    this.#peer = peer;
    this.#isOpen = true;
    for (const write of this.#unwritten.splice(0)) write();
    this.#secured?.();
  }

  getPeerX509Certificate(): X509Certificate | undefined {
    return this.#peer?.certificate;
  }

  getPeerCertificate(): object {
    const { certificate, issuer } = this.#peer ?? {};
    return {
      raw: certificate?.raw,
      ...(issuer !== undefined && { issuerCertificate: { raw: issuer.raw } }),
    };
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  /** Emits `timeout` when nothing happens for so long. */
  setTimeout(ms: number): this {
    clearTimeout(this.#idle);
    this.#idle = ms === 0 ? undefined : setTimeout(() => this.emit('timeout'), ms);
    return this;
  }

  /** The port of the other side, what this side shows of itself, and the first bytes that it has written. */
  get dialled(): {
    readonly port: number;
    readonly identity: Identity | undefined;
    readonly first: Buffer | undefined;
  } {
    return { port: this.remotePort, identity: this.#identity, first: this.#first };
  }

  override _write(chunk: Uint8Array, _encoding: string, done: () => void): void {
    const bytes = Buffer.from(chunk);
    this.#overhear(bytes);
    this.#first ??= bytes;
    this.#whenOpen(() => {
      this.#inFlight += bytes.length;
      this.#send(bytes);
      if (this.#inFlight < BUFFER_BYTES) done();
      else this.#written = done;
    });
  }

  /** Notes which kernels the server ends, by a signal or by the command to stop. */
  #overhear(bytes: Buffer): void {
    if (this.#direction !== 'toNode') return;
    if (bytes.includes(STOP)) {
      const [, id] = OF_KERNEL.exec(String(this.#wire.client?.dialled.first)) ?? [];
      if (id !== undefined) noteDoom(this.#world, id);
    }
    if (!bytes.includes(SIGNAL)) return;
    for (const line of bytes.toString().split('\n')) {
      const [, id] = DOOM.exec(line) ?? [];
      if (id !== undefined) noteDoom(this.#world, id);
    }
  }

  override _final(done: () => void): void {
    this.#whenOpen(() => {
      this.#sendEnd('end');
      done();
    });
  }

  override _read(): void {
    this.#wants = true;
    if (!this.#looks && (this.#come.length > 0 || this.#comeEnd)) this.#lookAfter(0);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#idle);
    this.#leave();
    done(error);
  }

  /** The network tells this end that the connection is no more. */
  cut(): void {
    this.#soon(() => this.destroy(reset()));
  }

  /** The machine at one end has lost its power: the system of the other end learns of it late. */
  lose(): void {
    this.#isGone = true;
    const other = this.#other;
    this.#world.after(
      KEEP_ALIVE_MS,
      () => {
        if (other !== undefined && !other.#isGone) other.#soon(() => other.destroy(reset()));
      },
      OUTSIDE,
    );
  }

  get #other(): WireSocket | undefined {
    return this.#wire[this.#direction === 'toServer' ? 'server' : 'client'];
  }

  #whenOpen(act: () => void): void {
    if (this.#isOpen) act();
    else this.#unwritten.push(act);
  }

  #soon(act: () => void): void {
    this.#world.after(0, act, this.life);
  }

  #post(arrive: () => void): void {
    this.#wire.send(this.#direction, arrive);
  }

  #send(bytes: Buffer): void {
    const { ofWires } = this.#world;
    const cut = ofWires.is(CUT) ? ofWires.below(bytes.length) : 0;
    for (const piece of [bytes.subarray(0, cut), bytes.subarray(cut)])
      if (piece.length > 0) this.#post(() => this.#tell(piece));
  }

  #tell(what: Parcel): void {
    const other = this.#other;
    if (other !== undefined) other.#take(what);
  }

  #sendEnd(what: 'end' | 'reset'): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#post(() => this.#tell(what));
  }

  /** The process has closed this end, or was killed. */
  #leave(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#sendEnd(this.#come.length > 0 ? 'reset' : 'end');
    this.#wire.route.wires.delete(this.#wire);
  }

  /** Takes what has come to the machine of this end. */
  #take(what: Parcel): void {
    if (this.#isGone || this.life.isOver) {
      if (typeof what === 'object') this.#post(() => this.#tell('reset'));
      return;
    }
    if (what === 'reset') {
      this.#soon(() => this.destroy(reset()));
      return;
    }
    if (what === 'end') this.#comeEnd = true;
    else this.#come.push(what);
    const { ofWires } = this.#world;
    if (!this.#looks) this.#lookAfter(ofWires.is(LATE_READS) ? ofWires.next() * LATE_READ_MS : 0);
  }

  #lookAfter(delayMs: number): void {
    this.#looks = true;
    this.#world.after(
      delayMs,
      () => {
        this.#looks = false;
        this.#look();
      },
      this.life,
    );
  }

  /** Hands over everything that has come as one piece. */
  #look(): void {
    if (this.destroyed || !this.#wants) return;
    const bytes = Buffer.concat(this.#come.splice(0));
    if (bytes.length > 0) {
      this.#wants = false;
      const other = this.#other;
      if (other !== undefined) this.#post(() => other.#arrived(bytes.length));
      if (!this.#isAnswered && this.#first !== undefined) {
        this.#isAnswered = true;
        answered.get(this.#world)?.(this, this.#first);
      }
      this.push(bytes);
    }
    if (this.#comeEnd && this.#come.length === 0) {
      this.#comeEnd = false;
      this.push(null);
    }
  }

  /** The other end has read so many bytes. */
  #arrived(bytes: number): void {
    this.#inFlight -= bytes;
    const written = this.#written;
    if (written === undefined || this.#inFlight >= BUFFER_BYTES || this.#isGone) return;
    this.#written = undefined;
    this.#soon(written);
  }
}

function refusal(port: number): Error {
  return Object.assign(new Error(`connect ECONNREFUSED 127.0.0.1:${port}`), { code: 'ECONNREFUSED' });
}

function reset(): Error {
  return Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
}
