import { defineMark, defineRecord } from '../codec.ts';

/** A run, stored in the form in which it is served. */
export interface RunRecord {
  readonly sessionId: string;
  readonly status: string;
  readonly kind: 'notebook' | 'agent';
  /** Present once the output was deleted because of its age. */
  readonly isTrimmed?: true;
  /** The trace that the run belongs to: its own W3C context, and the span that caused it. */
  readonly trace?: { readonly traceparent: string; readonly parentSpanId: string };
  /** The worker that runs it, if the server has several. Absent once it has ended. */
  readonly owner?: string;
  /**
   * For a run with a large input: where its input and output are in its JSON. Each place is the offset of the first
   * byte and that of the byte after the last.
   */
  readonly places?: { readonly input: readonly [number, number]; readonly output: readonly [number, number] };
  /** JSON of the run record. */
  readonly document: Uint8Array;
}

/** Written, with its places in all lists, in the home of its session. Key: workspace id, run id. */
export const runRecords = defineRecord<RunRecord>('run', 1);

/** JSON of a run without its output, for lists. Only runs with a large output and no large input have one. Key: workspace id, run id. */
export const runSummaries = defineRecord<Uint8Array>('run-summary', 1);

/** Index of the executions of one notebook session, oldest first. Key: workspace id, session id, run id. */
export const sessionRuns = defineMark('session-run');

/** Index of the prompts of one conversation, oldest first. Key: workspace id, conversation id, run id. */
export const agentRuns = defineMark('agent-run');

/** The members by which the lists of a workspace are filtered, so that only the runs on a page are read. */
export interface RunIndexEntry {
  readonly kind: 'notebook' | 'agent';
  readonly sessionId: string;
  readonly environmentId: string | null;
  readonly status: string;
  readonly createdAt: string;
  /** Absent when it has none. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** The user who submitted the run. */
  readonly createdBy?: string;
  /** Absent until the run has ended. */
  readonly finishedAt?: string;
}

/** All runs of a workspace, oldest first. Key: workspace id, run id. */
export const runIndex = defineRecord<RunIndexEntry>('run-index', 1);

/** Index of the runs with one status, oldest first. Key: workspace id, status, run id. */
export const statusRuns = defineMark('status-run');

/**
 * Index of the ended runs of a session by status, oldest first. Only few runs are in progress, so
 * that `statusRuns` suffices for those. Key: workspace id, kind of run, session id, status, run id.
 */
export const endedRuns = defineMark('ended-run');

/** Index of the runs in one environment, oldest first. Key: workspace id, environment id, run id. */
export const environmentRuns = defineMark('environment-run');

/** Index of the runs that a user has submitted, oldest first. Key: workspace id, user id, run id. */
export const userRuns = defineMark('user-run');

/** Index of the ended runs of a workspace, in the order of their ends. Key: workspace id, place (`places.ts`). */
export const endPlaces = defineMark('run-end');

/**
 * The newest run of a session whose output was deleted because of its age; the outputs of all older runs of that kind are already
 * deleted. Key: workspace id, kind of run, session id.
 */
export const trimmedRuns = defineRecord<string>('trimmed-run', 1);

/**
 * The printed text of one cell of a run that has not ended. It is stored because the server may die
 * before the end.
 */
export interface PrintedTextRecord {
  /** How many cells of the run printed before this one. */
  readonly place: number;
  readonly status: 'success' | 'error' | 'interrupted';
  /** Null while it runs. */
  readonly durationMs: number | null;
  readonly console: readonly {
    readonly channel: string;
    readonly mimetype: string;
    readonly data: unknown;
  }[];
  /** How many characters were left out. */
  readonly omitted: number;
}

/**
 * The printed text so far of the cells of a run. Written once a second in the home of its session, and removed by the
 * end of the run. So only runs in progress, and runs that a dead server left behind, have such text. Key: workspace
 * id, run id, cell id.
 */
export const printedTexts = defineRecord<PrintedTextRecord>('run-printed', 1);
