/**
 * Processes for embedded databases. Starting one and loading its library takes most of a short query, so the next one is
 * started ahead: it has opened nothing, serves one opening only like any other, and ends when nobody wants it for a while.
 */
import type { EngineKind, EngineLibrary } from './engine-messages.ts';
import { EngineProcess } from './engine-process.ts';

interface Spare {
  readonly engine: EngineProcess;
  readonly timer: NodeJS.Timeout;
}

const IDLE_MS = 60_000;
const LIBRARIES: Readonly<Record<EngineKind, EngineLibrary>> = {
  sqlite: 'sqlite',
  duckdb: 'duckdb',
  files: 'duckdb',
};

export class Engines implements Disposable {
  readonly #spares = new Map<EngineLibrary, Spare>();
  #disposed = false;

  /** A process that has opened nothing. The caller disposes of it. */
  take(kind: EngineKind): EngineProcess {
    const library = LIBRARIES[kind];
    const spare = this.#spares.get(library);
    this.#spares.delete(library);
    clearTimeout(spare?.timer);
    if (spare === undefined || spare.engine.ended) return new EngineProcess(library);
    spare.engine.hold(true);
    return spare.engine;
  }

  /** Starts the process that the next `take` gives, unless there is one. */
  prepare(kind: EngineKind): void {
    const library = LIBRARIES[kind];
    if (this.#disposed || this.#spares.get(library)?.engine.ended === false) return;
    const engine = new EngineProcess(library);
    engine.hold(false);
    const timer = setTimeout(() => this.#drop(library), IDLE_MS).unref();
    this.#spares.set(library, { engine, timer });
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    for (const library of [...this.#spares.keys()]) this.#drop(library);
  }

  #drop(library: EngineLibrary): void {
    const spare = this.#spares.get(library);
    this.#spares.delete(library);
    clearTimeout(spare?.timer);
    spare?.engine[Symbol.dispose]();
  }
}
