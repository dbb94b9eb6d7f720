import type { Connection, RequestOptions } from './connection.ts';

export interface CodeError {
  readonly type: string;
  readonly message: string;
  /** Null for the code itself. */
  readonly cellId: string | null;
}

export interface CodeResult {
  /** False when the code, a cell it ran, or the kernel failed. */
  readonly success: boolean;
  readonly output: { readonly mimetype: string; readonly data: unknown } | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly errors: readonly CodeError[];
}

export interface CodeOptions extends RequestOptions {
  /** Echoed on the `execution-completed` event. */
  readonly toolCallId?: string | undefined;
}

/** Python in a live notebook session, outside of its cells. */
export function code(connection: Connection) {
  return {
    /** Resolves although the code fails: look at `success`. Aborting `signal` interrupts the code. */
    execute: (sessionId: string, source: string, { toolCallId, signal }: CodeOptions = {}) =>
      connection.json<CodeResult>({
        method: 'POST',
        path: '/api/cee/kernel/execute',
        headers: { 'service-session-id': sessionId },
        body: { code: source, ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }) },
        signal,
      }),
  };
}
