/**
 * This folder's interface to the processes of embedded databases, which the kernel host starts and confines. One
 * request at a time, one answer each; src/confined/python/engines/engine.py is the other side.
 */
import type { EngineLaunch } from '#src/confined/children/engine-process.ts';

/** A process. Disposing kills it. */
export interface EngineProcess extends Disposable {
  readonly ended: boolean;
  /** Undefined until it was forked. */
  readonly pid: number | undefined;
  /** Rejects when the process ends. */
  ask(request: Readonly<Record<string, unknown>>): Promise<unknown>;
}

export type StartEngine = (launch: EngineLaunch) => EngineProcess;
