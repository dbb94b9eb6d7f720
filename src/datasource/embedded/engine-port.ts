/**
 * The interface to the processes of embedded databases, which the kernel host starts and confines. A process takes one request at a
 * time and answers it; src/confined/python/engines/engine.py is the other side.
 */
import type { EngineLaunch } from '#src/confined/processes/children/engine-process.ts';

/** A process. Disposing kills it. */
export interface EnginePort extends Disposable {
  readonly ended: boolean;
  /** Undefined until the process was forked. */
  readonly pid: number | undefined;
  /** Rejects when the process ends. */
  ask(request: Readonly<Record<string, unknown>>): Promise<unknown>;
}

export type StartEngine = (launch: EngineLaunch) => EnginePort;
