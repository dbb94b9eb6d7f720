/**
 * Processes of embedded databases. After a statement, a process is kept for a while for the next one on the same database, because
 * starting and confining a process takes longer than most statements. Each process runs one statement at a time. A workspace has a
 * bounded number of processes, and further statements wait.
 */

import type { EngineLaunch } from '#src/confined/processes/children/engine-process.ts';
import type { EnginePort, StartEngine } from './engine-port.ts';

interface Kept {
  readonly key: string;
  /** The folder of the workspace's files. */
  readonly folder: string;
  readonly engine: EnginePort;
  readonly timer: NodeJS.Timeout;
}

const IDLE_MS = 60_000;
/**
 * How many idle processes may wait for a statement. To make room, the process that has been idle
 * longest is ended.
 */
const MAX_KEPT = 16;
/** How many processes may work for one workspace, and how many of them for one kernel. */
const MAX_AT_WORK = 8;
const MAX_FOR_KERNEL = 4;

/** The statements of one workspace or kernel. */
interface Room {
  atWork: number;
  readonly waiting: Set<() => void>;
}

export class Engines implements Disposable {
  readonly #start: StartEngine;
  /** The processes that wait, the longest waiting first. */
  #kept: Kept[] = [];
  readonly #taken = new Set<EnginePort>();
  /** Processes at work: of workspaces by the folder of their files, and of kernels by their share. */
  readonly #rooms = new Map<string, Room>();
  #disposed = false;

  constructor(start: StartEngine) {
    this.#start = start;
  }

  /**
   * Resolves with a process for one statement when the kernel and its workspace are within their limits. The caller returns it.
   * Rejects with the reason of `signal`.
   */
  async take(launch: EngineLaunch, signal: AbortSignal): Promise<EnginePort> {
    await this.#enter(launch, signal);
    const key = keyOf(launch);
    const found = this.#kept.findLast((kept) => kept.key === key && !kept.engine.ended);
    if (found !== undefined) {
      this.#forget(found);
      this.#taken.add(found.engine);
      return found.engine;
    }
    this.#makeRoom(launch.filesDirectory);
    const engine = this.#start(launch);
    this.#taken.add(engine);
    if (this.#disposed) engine[Symbol.dispose]();
    return engine;
  }

  /** Keeps the process, which is idle now, for the next statement, or ends it. */
  give(launch: EngineLaunch, engine: EnginePort, isUsable: boolean): void {
    this.#taken.delete(engine);
    this.#leave(launch.filesDirectory);
    if (launch.memoryShare !== undefined) this.#leave(launch.memoryShare);
    if (!isUsable || this.#disposed || engine.ended) {
      engine[Symbol.dispose]();
      return;
    }
    const kept: Kept = {
      key: keyOf(launch),
      folder: launch.filesDirectory,
      engine,
      timer: setTimeout(() => this.#drop(kept), IDLE_MS).unref(),
    };
    this.#kept.push(kept);
    if (this.#kept.length > MAX_KEPT) this.#drop(this.#kept[0]!);
  }

  /** Ends all engines, also those that are in use. */
  [Symbol.dispose](): void {
    this.#disposed = true;
    for (const kept of [...this.#kept]) this.#drop(kept);
    for (const engine of this.#taken) engine[Symbol.dispose]();
    this.#taken.clear();
  }

  async #enter({ filesDirectory, memoryShare }: EngineLaunch, signal: AbortSignal): Promise<void> {
    if (memoryShare !== undefined) await this.#enterRoom(memoryShare, MAX_FOR_KERNEL, signal);
    try {
      await this.#enterRoom(filesDirectory, MAX_AT_WORK, signal);
    } catch (error) {
      if (memoryShare !== undefined) this.#leave(memoryShare);
      throw error;
    }
  }

  async #enterRoom(name: string, width: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    let room = this.#rooms.get(name);
    if (room === undefined) {
      room = { atWork: 0, waiting: new Set() };
      this.#rooms.set(name, room);
    }
    if (room.atWork < width) room.atWork++;
    else await untilCalled(room.waiting, signal);
  }

  #leave(name: string): void {
    const room = this.#rooms.get(name);
    if (room === undefined) return;
    const [next] = room.waiting;
    if (next !== undefined) next();
    else if (--room.atWork === 0) this.#rooms.delete(name);
  }

  /** Ends idle processes of the workspace if one more working process would make too many. */
  #makeRoom(folder: string): void {
    const waiting = this.#kept.filter((kept) => kept.folder === folder);
    const atWork = this.#rooms.get(folder)?.atWork ?? 0;
    const excess = waiting.length + atWork - MAX_AT_WORK;
    for (const kept of waiting.slice(0, Math.max(0, excess))) this.#drop(kept);
  }

  #drop(kept: Kept): void {
    this.#forget(kept);
    kept.engine[Symbol.dispose]();
  }

  #forget(kept: Kept): void {
    clearTimeout(kept.timer);
    this.#kept = this.#kept.filter((one) => one !== kept);
  }
}

function keyOf({ kind, filesDirectory, path, mode, memoryShare }: EngineLaunch): string {
  return JSON.stringify([kind, filesDirectory, path, mode, memoryShare]);
}

/**
 * Adds a function to `waiting`, and resolves when that function is called. Rejects with the reason
 * of `signal`.
 */
function untilCalled(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      waiting.delete(go);
      reject(signal.reason);
    };
    const go = () => {
      waiting.delete(go);
      signal.removeEventListener('abort', abort);
      resolve();
    };
    waiting.add(go);
    signal.addEventListener('abort', abort, { once: true });
  });
}
