/**
 * The history of clients while workers of their server were replaced or killed: one entry for each operation, with the times at which the
 * client sent it and had its answer. Nothing is judged while it is recorded; `judge.ts` does that afterwards.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import type { RunStatus } from '#src/contract/wire/run.ts';

/** The times at which a client sent a request and got the answer, in milliseconds of one clock. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/**
 * It is unknown whether the request was carried out: the connection broke, or the server said so.
 */
export type Unknown = 'unknown';

/** A request to run a cell. Retries have the same `key`. The cell writes `token` to a file each time that it runs. */
export interface Submission extends Span {
  readonly kind: 'submission';
  readonly session: string;
  readonly key: string;
  readonly token: string;
  readonly answer: { readonly runId: string } | Unknown;
}

/** A run as a request returned it. */
export interface RunRead extends Span {
  readonly kind: 'run-read';
  readonly runId: string;
  readonly status: RunStatus;
  readonly isStale: boolean;
}

/** A client asked for the cancellation of a run. */
export interface CancelRequest extends Span {
  readonly kind: 'cancel';
  readonly runId: string;
}

/** A subscriber of a session's events received the end of a run. `isLive`: as a live event, not a replayed one. */
export interface EndSeen {
  readonly kind: 'end-seen';
  readonly at: number;
  readonly follower: string;
  readonly runId: string;
  readonly status: RunStatus;
  readonly isLive: boolean;
}

/** A notebook was written on condition that its version is `expected`; `token` becomes its title. */
export interface RegisterWrite extends Span {
  readonly kind: 'register-write';
  readonly register: string;
  readonly expected: string;
  readonly token: string;
  readonly answer: { readonly version: string } | 'conflict' | Unknown;
}

export interface RegisterRead extends Span {
  readonly kind: 'register-read';
  readonly register: string;
  readonly version: string;
  readonly token: string;
}

/** A run in the state in which it was found at the very end. */
export interface FinalRun {
  readonly kind: 'final-run';
  readonly session: string;
  readonly runId: string;
  readonly status: RunStatus;
  readonly isStale: boolean;
  /** The token in the run's code; undefined when the code has none. */
  readonly token?: string | undefined;
}

/** How often a cell with this token ran, counted by the lines that the cell has written. */
export interface Executed {
  readonly kind: 'executed';
  readonly token: string;
  readonly times: number;
}

export type Entry =
  | Submission
  | RunRead
  | CancelRequest
  | EndSeen
  | RegisterWrite
  | RegisterRead
  | FinalRun
  | Executed;

/** Returns the entries of one kind. */
export function ofKind<Kind extends Entry['kind']>(
  entries: readonly Entry[],
  kind: Kind,
): Extract<Entry, { readonly kind: Kind }>[] {
  return entries.filter((entry): entry is Extract<Entry, { readonly kind: Kind }> => entry.kind === kind);
}

/** Records entries in memory, and in a file of JSON lines that remains when the judgement is against the server. */
export class History implements Disposable {
  readonly entries: Entry[] = [];
  readonly #descriptor: number | undefined;

  /** Without `file` the history is in memory only. */
  constructor(file?: string) {
    this.#descriptor = file === undefined ? undefined : openSync(file, 'a', 0o600);
  }

  add(entry: Entry): void {
    this.entries.push(entry);
    if (this.#descriptor !== undefined) writeSync(this.#descriptor, `${JSON.stringify(entry)}\n`);
  }

  [Symbol.dispose](): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }
}
