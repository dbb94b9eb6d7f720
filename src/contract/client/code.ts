import { type Connection, present, type RequestOptions } from './connection.ts';
import { operation } from './operation.ts';

export interface CodeOptions extends RequestOptions {
  /** An id that the `execution-completed` event repeats. */
  readonly toolCallId?: string | undefined;
  /** Whether the names that the code defines are kept for later calls with `keep`. */
  readonly keep?: boolean | undefined;
  /** How many seconds the code may run; it is then interrupted. */
  readonly timeoutS?: number | undefined;
}

/** Python code that runs in a notebook session, outside of its cells. */
export function code(connection: Connection) {
  return {
    /** Resolves even when the code fails: check `success`. Aborting `signal` interrupts the code. */
    execute: (sessionId: string, source: string, { toolCallId, keep, timeoutS, signal }: CodeOptions = {}) =>
      connection.json(
        operation('executeCode', {
          headers: { 'service-session-id': sessionId },
          body: { code: source, ...present({ keep, timeoutS, tool_call_id: toolCallId }) },
          signal,
          endsWithConnection: true,
        }),
      ),
  };
}
