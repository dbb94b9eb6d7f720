/** A kernel host without Python: each order becomes a scripted child, which connects to the socket that the order names. */
import { constants } from 'node:os';
import type { ProcessEnd } from '#src/confined/processes/exit-classification.ts';
import { FrameError } from '#src/confined/processes/frame-decoder.ts';
import type {
  ChildListener,
  HostHello,
  StartZygote,
  Zygote,
} from '#src/confined/processes/host/zygote-process.ts';
import { isNode, noteNodeKernel } from '../nodes/kernels-of-nodes.ts';
import type { FarEnd, MemorySocket } from '../stand-ins/memory-socket.ts';
import { connectTo } from '../stand-ins/net.ts';
import { type Life, OUTSIDE, type Task, type World, world } from '../world/world.ts';
import { CONTROL, FrameReader, frameOf, greetingOf, LAUNCH } from './frames.ts';
import { type Hang, ScriptedKernel } from './scripted-kernel.ts';

const HELLO: HostHello = {
  marimo: 'scripted',
  marimoDir: '/nowhere',
  python: '3.12.0',
  supported: true,
  missing: [],
  confinement: 'none: simulated',
  layers: { namespaces: false, landlock: 0, seccomp: false, uid: null },
  weight: null,
  bootMs: 1,
};
const FORK_MS = 30;
const CONNECT_MS = 3;
const RETRY_MS = 1;
const REPORT_MS = 5;
/** The time between a frame and the handler that has waited for it. */
const HANDLER_MS = 0.01;
const FIRST_PID = 100;
/** How long a killed process may stay in a call of the system, in which it does nothing more. The server waits a second for its end. */
const LATE_DEATHS_MS = [300, 3000, 20_000, 20_000];
/** A part of each command that runs cells. */
const WORK = '"execute-cells"';

type Order = Readonly<Record<string, unknown>>;

export class SimulatedZygote implements Zygote {
  alive = true;
  readonly ended: Promise<void>;
  readonly children = new Map<string, Child>();
  readonly #listeners = new Map<string, ChildListener>();
  readonly #world = world();
  /** The life of the process that it serves. */
  readonly life = world().life;
  readonly #leaseMs: number;
  #lease: Task | undefined;
  #pid = FIRST_PID;
  #end: () => void = () => undefined;

  /** Calls `started` with each one. */
  static starter(started: (zygote: SimulatedZygote) => void): StartZygote {
    return async ({ env }) => {
      const zygote = new SimulatedZygote(Number(env.TROUPE_LEASE_S ?? 0) * 1000);
      started(zygote);
      return { zygote, hello: HELLO };
    };
  }

  /** It ends when its lease is not renewed for so long; 0: it has none. */
  constructor(leaseMs = 0) {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#leaseMs = leaseMs;
    this.renewLease();
  }

  renewLease(): void {
    if (this.#leaseMs === 0 || !this.alive) return;
    if (this.#lease !== undefined) this.#lease.isCancelled = true;
    const end = () => {
      if (!this.alive) return;
      this.#world.count('leases that have ended');
      this.#world.trace.add('lease', `of ${this.life.name} has ended`);
      this.kill();
    };
    this.#lease = this.#world.after(this.#leaseMs, end, OUTSIDE);
  }

  setBusy(): void {}

  order(id: string, order: Order, listener: ChildListener): void {
    if (!this.alive) return; // nobody reads it
    if (order.op !== 'fork' && order.op !== 'syntax') {
      this.#report(1, () => listener.refused(`A simulated host has no ${String(order.op)}.`));
      return;
    }
    this.#listeners.set(id, listener);
    const child = new Child({
      id,
      kind: order.is_proof === true ? 'proof' : order.op,
      pid: ++this.#pid,
      connection: order.connection as { readonly path: string; readonly token: string },
      forked: (pid) => this.#report(0, () => listener.forked?.(pid, false)),
      ended: (end) => {
        this.children.delete(id);
        if (!this.#listeners.delete(id)) return;
        this.#report(this.#world.ofKernels.next() * REPORT_MS, () => listener.ended(end));
      },
    });
    this.children.set(id, child);
  }

  signal(id: string, signal: number): void {
    const child = this.children.get(id);
    if (child === undefined) return;
    this.#world.trace.add('order', `${child.life.name} gets the signal ${signal}`);
    if (signal === constants.signals.SIGKILL) child.isDoomed = true;
    const delayMs = this.#world.ofKernels.next() * this.#world.nature.signalMs;
    this.#world.after(delayMs, () => child.signal(signal), child.life);
  }

  /** Kernels start. */
  onProof(listener: (problem: null) => void): void {
    this.#report(1, () => listener(null));
  }

  stop(): void {
    this.kill();
  }

  kill(): void {
    if (!this.alive) return;
    this.alive = false;
    const listeners = [...this.#listeners.values()];
    this.#listeners.clear();
    for (const child of [...this.children.values()]) child.end();
    this.#report(1, () => {
      for (const listener of listeners) listener.lost();
      this.#end();
    });
  }

  /** Ends the kernels of a server that was killed, a moment later: the guardian has to notice the death first. */
  serverDied(): void {
    this.alive = false;
    for (const child of this.children.values()) {
      const delayMs = this.#world.ofKernels.next() * REPORT_MS;
      this.#world.after(delayMs, () => child.end(), OUTSIDE);
    }
  }

  #report(delayMs: number, act: () => void): void {
    this.#world.after(delayMs, act, this.life);
  }
}

interface ChildPorts {
  readonly id: string;
  readonly kind: 'fork' | 'syntax' | 'proof';
  readonly pid: number;
  readonly connection: { readonly path: string; readonly token: string };
  readonly forked: (pid: number) => void;
  readonly ended: (end: ProcessEnd) => void;
}

/** One child process: a kernel, or a judge of syntax. */
export class Child implements FarEnd {
  readonly life: Life;
  readonly kind: ChildPorts['kind'];
  readonly pid: number;
  /** Whether the server has ordered its end. */
  isDoomed = false;
  readonly #world: World = world();
  readonly #ports: ChildPorts;
  readonly #frames = new FrameReader();
  #socket: MemorySocket | undefined;
  #kernel: ScriptedKernel | undefined;
  #isOver = false;
  /** Whether it never connects to the server. */
  #isLost = false;
  /** How long it stays in the system after it was killed. */
  #lateMs = 0;
  readonly #isOnNode: boolean;

  constructor(ports: ChildPorts) {
    this.#ports = ports;
    this.kind = ports.kind;
    this.pid = ports.pid;
    const { graph } = this.#world.life;
    const node = isNode(graph) ? `${graph} ` : '';
    this.#isOnNode = node !== '';
    this.life = { name: `${node}${ports.kind} ${ports.pid}`, isOver: false };
    if (this.#isOnNode) noteNodeKernel(this.#world, ports.id, this.life);
    if (ports.kind !== 'syntax') {
      if (ports.kind === 'fork') this.#world.count('kernels');
      const hang = ports.kind === 'fork' ? this.#drawHang() : undefined;
      this.#isLost = hang === 'connection';
      if (hang === 'death') this.#lateMs = this.#world.ofHangs.pick(LATE_DEATHS_MS);
      this.#kernel = new ScriptedKernel(
        this.life,
        { say: (messages) => this.#say(...messages), exit: (code) => this.#die(code, null) },
        hang === 'start' || hang === 'stop' ? hang : undefined,
      );
    }
    this.#after(2 + this.#world.ofKernels.next() * FORK_MS, () => {
      ports.forked(ports.pid);
      this.#after(this.#world.ofKernels.next() * CONNECT_MS, () => this.#connect());
    });
  }

  signal(signal: number): void {
    if (this.#isOver || this.life.isOver) return;
    this.#world.trace.add('signal', `${signal} reaches ${this.life.name}`);
    if (signal === constants.signals.SIGINT) this.#interrupt();
    else if (this.#lateMs === 0) this.#die(0, signal);
    else {
      this.#world.count('late deaths');
      this.#world.after(this.#lateMs, () => this.#die(0, signal), OUTSIDE);
      this.#world.end(this.life); // nothing of it happens any more
    }
  }

  /** Ends it with its kernel host: its process may still be there, but nobody hears of it any more. */
  end(): void {
    this.#lateMs = 0;
    this.#die(0, constants.signals.SIGKILL);
  }

  /** Returns where this kernel hangs; undefined for most kernels, and for all kernels once users have done their last act. */
  #drawHang(): Hang | 'connection' | 'death' | undefined {
    const { ofHangs, nature, isDisturbed } = this.#world;
    if (nature.stubbornKernels === 0 || !isDisturbed || !ofHangs.is(nature.stubbornKernels)) return undefined;
    const hang = ofHangs.pick(['connection', 'start', 'stop', 'death', 'death', 'death'] as const);
    this.#world.count(`hangs of kernels: ${hang}`);
    return hang;
  }

  /** The handler of a kernel first waits until the frames that were sent before the signal are read (`_wait_for_reader`). */
  #interrupt(): void {
    const unreadMs = (this.#socket?.readAtMs ?? 0) - this.#world.nowMs;
    if (unreadMs < 0) this.#kernel?.interrupt();
    else this.#after(unreadMs + HANDLER_MS, () => this.#kernel?.interrupt());
  }

  /** A kernel gets no work after the order to kill it. */
  written(bytes: Buffer): void {
    // Bytes and signals come to a node by different connections.
    if (this.isDoomed && !this.#isOnNode && bytes.includes(WORK))
      this.#world.problem(`${this.life.name} gets work after the server has ordered its end`);
  }

  read(bytes: Buffer): void {
    try {
      this.#read(bytes);
    } catch (error) {
      // A server that refuses the connection of a kernel says so in a line, which the node passes on: no frame, so the kernel ends.
      if (!this.#isOnNode || !(error instanceof FrameError)) throw error;
      this.#die(1, null);
    }
  }

  #read(bytes: Buffer): void {
    for (const { channel, body } of this.#frames.read(bytes)) {
      if (this.#kernel !== undefined) this.#kernel.take(channel, body);
      else if (channel === LAUNCH) this.#say({ op: 'syntax-ready' });
      else if (channel === CONTROL) {
        const { id, codes } = JSON.parse(body.toString()) as { id: number; codes: string[] };
        this.#say({ op: 'parsed', id, parses: codes.map(() => true) });
      }
    }
  }

  closed(): void {
    this.signal(constants.signals.SIGKILL);
  }

  #connect(): void {
    if (this.#isLost) return;
    const { path, token } = this.#ports.connection;
    this.#socket = connectTo(path, this);
    if (this.#socket === undefined) this.#after(RETRY_MS, () => this.#connect());
    else this.#socket.arrive(greetingOf(token));
  }

  #say(...messages: readonly unknown[]): void {
    if (!this.#isOver) this.#socket?.arrive(Buffer.concat(messages.map(frameOf)));
  }

  #die(code: number, signal: number | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket?.arrive('end');
    this.#world.end(this.life);
    this.#ports.ended({ words: '', code, signal, outOfMemory: false });
  }

  #after(delayMs: number, act: () => void): void {
    this.#world.after(delayMs, act, this.life);
  }
}
