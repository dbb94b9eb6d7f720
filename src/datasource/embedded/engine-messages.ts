/** What a server and the process of an embedded database say to each other. One request at a time, one reply each. */
import type { FailureCategory } from '../failure.ts';
import type { Cell, Column, Parameter } from '../rows.ts';

export type EngineKind = 'duckdb' | 'sqlite' | 'files';

/** What a process has loaded. */
export type EngineLibrary = 'duckdb' | 'sqlite';

export type EngineRequest =
  /** The first request: loads what it takes. */
  | { readonly type: 'prepare'; readonly library: EngineLibrary }
  | {
      readonly type: 'open';
      readonly kind: EngineKind;
      readonly filesDirectory: string;
      readonly path: string;
      readonly mode: EngineMode;
    }
  | { readonly type: 'query'; readonly sql: string; readonly parameters: readonly Parameter[] }
  | { readonly type: 'next' };

/** `probe` leaves no trace on disk; only `write` changes files. None makes one that is not there. */
export type EngineMode = 'probe' | 'read' | 'write';

export type EngineReply =
  | { readonly type: 'prepared' }
  | { readonly type: 'opened' }
  /** `null` when the statement gives no rows. */
  | { readonly type: 'columns'; readonly columns: readonly Column[] | null }
  /** Empty at the end. */
  | { readonly type: 'rows'; readonly rows: readonly (readonly Cell[])[] }
  | { readonly type: 'failed'; readonly category: FailureCategory; readonly detail: string | null };

/** The database that runs in the process. */
export interface Engine {
  query(sql: string, parameters: readonly Parameter[]): Promise<RunningQuery>;
}

export interface RunningQuery {
  readonly columns: readonly Column[] | null;
  /** The next rows; none at the end. */
  next(): Promise<readonly (readonly Cell[])[]>;
}

/** For a text with more than one statement, of which some would not run, or unseen. */
export const SEVERAL = 'Exactly one statement is expected. Run them one after the other.';

/** The database refused a statement, and says why. */
export class StatementError extends Error {}

export function isReply(message: unknown): message is EngineReply {
  return (
    typeof message === 'object' &&
    message !== null &&
    'type' in message &&
    ['prepared', 'opened', 'columns', 'rows', 'failed'].includes(String(message.type))
  );
}

export function isRequest(message: unknown): message is EngineRequest {
  return (
    typeof message === 'object' &&
    message !== null &&
    'type' in message &&
    ['prepare', 'open', 'query', 'next'].includes(String(message.type))
  );
}
