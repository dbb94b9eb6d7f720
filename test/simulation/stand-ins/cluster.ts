/**
 * `node:cluster` for a primary of a simulation: a worker is another life, with a graph of modules of its own. Messages of the channel
 * arrive in order, after drawn times. Messages that a process has sent arrive although it is killed.
 */
import { EventEmitter } from 'node:events';
import type { SlotTable } from '#src/runtime/homes/slots.ts';
import { forgetTables, noteTable } from '../judges/homes.ts';
import { type Life, OUTSIDE, type World, world } from '../world/world.ts';

/** The worker's end of the channel. */
export interface WorkerChannel {
  send(message: unknown): void;
  onMessage(listener: (message: unknown) => void): void;
}

/** Runs the program of a worker, in its life. It ends by `exit`. */
export type WorkerProgram = (channel: WorkerChannel, exit: (code: number) => void, life: Life) => void;

interface Started {
  readonly program: WorkerProgram;
  readonly begun: (life: Life) => void;
  readonly ended: (life: Life) => void;
}

const WAY_MS = 0.1;
const SLOW_MS = 30;
/** The longest time until a primary hears that a worker has ended. */
const NEWS_MS = 3;
const FIRST_PID = 1000;

let started: Started | undefined;
let lastPid = FIRST_PID;

/** Sets the program of the workers of this world. */
export function runWorkersWith(given: Started): void {
  started = given;
  lastPid = FIRST_PID;
  taken.clear();
  forgetTables();
}

/** Messages in one direction. */
class Way {
  readonly #world: World = world();
  #arrivesAtMs = 0;

  /** Calls `arrive` in the life of the receiver, after earlier messages. Returns when that is. */
  send(receiver: Life, arrive: () => void): number {
    const { ofLinks, nature, nowMs } = this.#world;
    const wayMs = 0.02 + ofLinks.next() * (ofLinks.is(nature.slowLinks) ? SLOW_MS : WAY_MS);
    this.#arrivesAtMs = Math.max(this.#arrivesAtMs, nowMs + wayMs);
    this.#world.after(this.#arrivesAtMs - nowMs, arrive, receiver);
    return this.#arrivesAtMs;
  }
}

interface Message {
  readonly op: string;
  readonly table?: number | SlotTable;
  readonly slots?: readonly number[];
}

/** Messages that would fill a trace. */
const UNTOLD: ReadonlySet<string> = new Set(['beat', 'child-busy']);

/** Notes a message in the trace. */
function tell(way: string, message: unknown): void {
  const { op, table, slots } = message as Message;
  if (UNTOLD.has(op)) return;
  if (typeof table === 'object') noteTable(table);
  const of = typeof table === 'object' ? `${table.number} of ${table.workers.join()}` : (table ?? '');
  world().trace.add('channel', `${way} ${op} ${of}${slots === undefined ? '' : `, ${slots.length} slots`}`);
}

/** Messages are JSON on their way. */
function copied(message: unknown): unknown {
  return JSON.parse(JSON.stringify(message));
}

class SimulatedWorker extends EventEmitter {
  readonly process: { readonly pid: number; kill(signal: string): void };
  readonly #world: World = world();
  readonly #primary = world().life;
  readonly #life: Life;
  readonly #toWorker = new Way();
  readonly #toPrimary = new Way();
  #listener: ((message: unknown) => void) | undefined;
  /** Messages from before somebody listened. */
  readonly #early: unknown[] = [];
  #isConnected = true;
  #code: number | null = null;

  constructor({ program, begun, ended }: Started, name: string) {
    super();
    const now = this.#world;
    const pid = ++lastPid;
    this.#life = withGraph(name);
    this.process = { pid, kill: () => now.after(now.ofLinks.next(), () => this.#end(), OUTSIDE) };
    now.atEnd(this.#life, () => {
      ended(this.#life);
      this.#toPrimary.send(this.#primary, () => {
        this.#isConnected = false;
      });
      const signal = this.#code === null ? 'SIGKILL' : null;
      now.after(now.ofLinks.next() * NEWS_MS, () => this.emit('exit', this.#code, signal), this.#primary);
    });
    begun(this.#life);
    const channel: WorkerChannel = {
      send: (message) => this.#tellPrimary(copied(message)),
      onMessage: (listener) => {
        this.#listener = listener;
        for (const message of this.#early.splice(0)) listener(message);
      },
    };
    const exit = (code: number) => {
      if (this.#life.isOver) return;
      this.#code = code;
      this.#end();
    };
    now.after(now.ofLinks.next() * now.nature.forkMs, () => program(channel, exit, this.#life), this.#life);
  }

  isConnected(): boolean {
    return this.#isConnected;
  }

  send(message: unknown): boolean {
    const copy = copied(message);
    tell(`to ${this.#life.name}:`, copy);
    this.#toWorker.send(this.#life, () => {
      if (this.#listener === undefined) this.#early.push(copy);
      else this.#listener(copy);
    });
    return true;
  }

  #tellPrimary(message: unknown): void {
    if (this.#life.isOver) return;
    tell(`from ${this.#life.name}:`, message);
    this.#toPrimary.send(this.#primary, () => this.emit('message', message));
  }

  #end(): void {
    if (!this.#life.isOver) this.#world.end(this.#life);
  }
}

/** The graphs of modules that living processes have. */
const taken = new Map<string, Life>();

function withGraph(name: string): Life {
  for (let number = 1; ; number++) {
    const graph = String(number);
    const life = taken.get(graph);
    if (life !== undefined && !life.isOver) continue;
    const next: Life = { name, graph, isOver: false };
    taken.set(graph, next);
    return next;
  }
}

let args: readonly string[] = [];

function setupPrimary(settings: { readonly args?: readonly string[] }): void {
  args = settings.args ?? args;
}

function fork(): SimulatedWorker {
  if (started === undefined) throw new Error('There is no program for workers.');
  return new SimulatedWorker(started, `worker ${args.at(-1)}`);
}

export default { setupPrimary, fork };
