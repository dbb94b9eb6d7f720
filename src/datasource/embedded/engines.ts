/**
 * Processes of embedded databases. One that has answered a statement is kept a while for the next one on the same
 * database: starting and confining one takes longer than most statements. Each runs one statement at a time.
 */
import type { EngineLaunch, EngineProcess, StartEngine } from './engine-port.ts';

interface Kept {
  readonly key: string;
  readonly engine: EngineProcess;
  readonly timer: NodeJS.Timeout;
}

const IDLE_MS = 60_000;
/** How many processes may wait for a statement. The one that has waited longest is ended to make room. */
const MAX_KEPT = 16;

export class Engines implements Disposable {
  readonly #start: StartEngine;
  /** The processes that wait, the longest waiting first. */
  #kept: Kept[] = [];
  readonly #taken = new Set<EngineProcess>();
  #disposed = false;

  constructor(start: StartEngine) {
    this.#start = start;
  }

  /** Returns a process for one statement. The caller gives it back or disposes of it. */
  take(launch: EngineLaunch): EngineProcess {
    const key = keyOf(launch);
    const found = this.#kept.findLast((kept) => kept.key === key && !kept.engine.ended);
    if (found === undefined) {
      const engine = this.#start(launch);
      this.#taken.add(engine);
      if (this.#disposed) engine[Symbol.dispose]();
      return engine;
    }
    this.#forget(found);
    this.#taken.add(found.engine);
    return found.engine;
  }

  /** Keeps the process, which has nothing left to do, for the next statement; or ends it. */
  give(launch: EngineLaunch, engine: EngineProcess, isUsable: boolean): void {
    this.#taken.delete(engine);
    if (!isUsable || this.#disposed || engine.ended) {
      engine[Symbol.dispose]();
      return;
    }
    const kept: Kept = {
      key: keyOf(launch),
      engine,
      timer: setTimeout(() => this.#drop(kept), IDLE_MS).unref(),
    };
    this.#kept.push(kept);
    if (this.#kept.length > MAX_KEPT) this.#drop(this.#kept[0]!);
  }

  /** Ends all of them, also those that are in use. */
  [Symbol.dispose](): void {
    this.#disposed = true;
    for (const kept of [...this.#kept]) this.#drop(kept);
    for (const engine of this.#taken) engine[Symbol.dispose]();
    this.#taken.clear();
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

function keyOf({ kind, filesDirectory, path, mode }: EngineLaunch): string {
  return JSON.stringify([kind, filesDirectory, path, mode]);
}
