/**
 * This folder's interface to the processes of embedded databases, which the kernel host starts and confines. One
 * request at a time, one answer each; src/kernel/host/engine.py is the other side.
 */
export type EngineKind = 'duckdb' | 'sqlite' | 'files';

/** `probe` leaves no trace on disk; only `write` changes files. No mode creates a file that does not exist. */
export type EngineMode = 'probe' | 'read' | 'write';

/** One database, as a process is started for it. */
export interface EngineLaunch {
  readonly kind: EngineKind;
  /** The folder of the workspace's files. */
  readonly filesDirectory: string;
  /** The path of the database in that folder. */
  readonly path: string;
  readonly mode: EngineMode;
  /** Of the kernel towards whose limit of memory it counts. Without one, all processes of the workspace are limited together. */
  readonly memoryShare?: string;
}

/** A process. Disposing kills it. */
export interface EngineProcess extends Disposable {
  readonly ended: boolean;
  /** Undefined until it was forked. */
  readonly pid: number | undefined;
  /** Rejects when the process ends. */
  ask(request: Readonly<Record<string, unknown>>): Promise<unknown>;
}

export type StartEngine = (launch: EngineLaunch) => EngineProcess;
