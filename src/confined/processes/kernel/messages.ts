/**
 * The messages of a kernel, as the server reads them. Members are camelCase; CellOutput and CellError are marimo's own
 * objects, passed through untouched because they are saved and handed back to marimo as they are.
 */
import type { OutputTable } from '#src/contract/wire/output.ts';

/** One value shown or printed. Errors have channel `marimo-error` and a list of CellError as data. */
export interface CellOutput {
  readonly channel: 'stdout' | 'stderr' | 'stdin' | 'pdb' | 'output' | 'marimo-error' | 'media';
  readonly mimetype: string;
  readonly data: string | readonly CellError[] | Readonly<Record<string, unknown>>;
  readonly timestamp: number;
  /** The output as text; added by the bridge. */
  readonly text?: string;
  /** The first rows of a value that is a table. */
  readonly table?: OutputTable;
}

/** marimo's tagged error; `type` determines its other members. */
export interface CellError {
  readonly type: string;
  readonly msg?: string;
  readonly exception_type?: string | null;
  readonly raising_cell?: string | null;
  readonly traceback?: string | null;
  readonly lineno?: number | null;
  /** For `multiple-defs`: the variable, and the other cells that define it. */
  readonly name?: string;
  readonly cells?: readonly string[];
  /** For `cycle` and `setup-refs`: `[cell, variables, cell]` for each edge. */
  readonly edges_with_vars?: readonly unknown[];
}

export interface KernelCellConfig {
  readonly disabled?: boolean;
  readonly hideCode?: boolean;
  readonly expandOutput?: boolean;
  readonly column?: number | null;
}

/**
 * A partial update of one cell. A member that is null stays unchanged. An empty `console` clears
 * the console, and otherwise its entries are appended.
 */
export interface CellOp {
  readonly op: 'cell-op';
  readonly cellId: string;
  readonly output: CellOutput | null;
  readonly console: readonly CellOutput[] | null;
  readonly status: 'idle' | 'queued' | 'running' | 'disabled-transitively' | null;
  readonly staleInputs: boolean | null;
  readonly runId: string | null;
  readonly executionId: string | null;
  readonly timestamp: number;
}

/** One attempt to run a cell. `running` is the proof that its first line was reached. */
export interface Execution {
  readonly op: 'execution';
  readonly executionId: string;
  readonly cellId: string;
  readonly runId: string | null;
  readonly phase: 'planned' | 'running' | 'completed';
}

/** The whole variable graph, which replaces the earlier graph. The kernel sends it when it has changed. */
export interface Variables {
  readonly op: 'variables';
  readonly variables: readonly {
    readonly name: string;
    readonly declaredBy: readonly string[];
    readonly usedBy: readonly string[];
  }[];
}

export type DocumentChange =
  | {
      readonly type: 'create-cell';
      readonly cellId: string;
      readonly code: string;
      readonly name: string;
      readonly config: KernelCellConfig;
      readonly before: string | null;
      readonly after: string | null;
    }
  | { readonly type: 'delete-cell'; readonly cellId: string }
  | {
      readonly type: 'move-cell';
      readonly cellId: string;
      readonly before: string | null;
      readonly after: string | null;
    }
  | { readonly type: 'reorder-cells'; readonly cellIds: readonly string[] }
  | { readonly type: 'set-code'; readonly cellId: string; readonly code: string }
  | { readonly type: 'set-name'; readonly cellId: string; readonly name: string }
  | { readonly type: 'set-config'; readonly cellId: string; readonly config: KernelCellConfig };

/**
 * Changes to apply together. Those with source `kernel` only confirm the order that the server
 * requested.
 */
export interface DocumentTransaction {
  readonly op: 'notebook-document-transaction';
  readonly source: string;
  readonly changes: readonly DocumentChange[];
}

export interface MissingPackages {
  readonly op: 'missing-package-alert';
  readonly packages: readonly string[];
}

/**
 * The kernel process runs and has sent its token. `hostMs` is the time since the fork, as the
 * kernel measured it.
 */
export interface BridgeReady {
  readonly op: 'bridge-ready';
  readonly hostMs: number | null;
}

/** How the last run of a cell ended; null when the cell has not run in this kernel. */
export type CellStatus =
  | 'success'
  | 'exception'
  | 'stopped'
  | 'cancelled'
  | 'interrupted'
  | 'marimo-error'
  | 'disabled'
  | null;

export interface CellVerdict {
  readonly status: CellStatus;
  readonly stale: boolean;
  /** Structural errors. A cell that has any cannot run. */
  readonly errors: readonly CellError[];
}

export interface ElementFailure {
  readonly elementId: string;
  readonly reason: string;
  /** Whether the element has the new value all the same. */
  readonly isSet: boolean;
}

/**
 * The exact state, after one command, of every cell that may have changed since the last report; the first report has all cells.
 * `seq` is null for a command that came from the kernel itself.
 */
export interface BridgeDone {
  readonly op: 'bridge-done';
  readonly seq: number | null;
  readonly type: string;
  readonly error: string | null;
  readonly interrupted: boolean;
  readonly cells: ReadonlyMap<string, CellVerdict>;
  /** The elements of a command that do not exist in the kernel. */
  readonly unknown?: readonly string[];
  /** The elements of a command that failed as their value was set, each with the error of Python. */
  readonly failures?: readonly ElementFailure[];
}

/**
 * The structural errors that new code would cause, in the given cells and in all cells on which these depend.
 */
export interface BridgeJudged {
  readonly op: 'bridge-judged';
  readonly errors: ReadonlyMap<string, readonly CellError[]>;
}

/**
 * A question from notebook code to its server. The answer has the same id, and the members that the
 * method defines.
 */
export interface KernelCall {
  readonly op: 'kernel-call';
  readonly id: number;
  readonly method: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Code mode is about to run these cells, which cannot run. Their errors are reported once more. */
export interface BridgeAsked {
  readonly op: 'bridge-asked';
  readonly cells: readonly string[];
}

/** Code mode has set options of the app. */
export interface BridgeAppOptions {
  readonly op: 'bridge-app-options';
  readonly options: Readonly<Record<string, unknown>>;
}

/** Begins or ends the state that the kernel sends for one new page: the messages between belong to that page. */
export interface BridgePageState {
  readonly op: 'bridge-page-state';
  readonly page: number;
  readonly isOver: boolean;
}

/**
 * The state of all widgets of the notebook after a command that has changed it: a text of JSON, which the server never reads. It
 * comes before the end of the command.
 */
export interface BridgeWidgets {
  readonly op: 'bridge-widgets';
  readonly widgets: string;
}

/**
 * An output or figure of a cell cannot be sent. The reason is the end of a sentence. The cell's
 * stderr says the same.
 */
export interface BridgeWarning {
  readonly op: 'bridge-warning';
  readonly cellId: string;
  /** The name of the lost item: `An output` or `A figure`. */
  readonly what: string;
  readonly reason: string;
}

/**
 * The result of a function of a UI element. `fields` are all members as the kernel sent them, for
 * the page that called the function.
 */
export interface FunctionCallResult {
  readonly op: 'function-call-result';
  readonly functionCallId: string;
  /** Whether the function exists. */
  readonly found: boolean;
  /** The reason why the function failed; null when the function succeeded. */
  readonly failure: string | null;
  readonly value: unknown;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * The answer to a request for completions. `fields` are all members as the kernel sent them, for
 * the page that asked.
 */
export interface CompletionResult {
  readonly op: 'completion-result';
  readonly completionId: string;
  readonly prefixLength: number;
  readonly options: readonly { readonly name: string; readonly type: string; readonly info: string | null }[];
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A notification that the server does not use, with all its members. */
export interface OtherMessage {
  readonly op: 'other';
  readonly name: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export type KernelMessage =
  | CellOp
  | Execution
  | Variables
  | DocumentTransaction
  | MissingPackages
  | BridgeReady
  | BridgeDone
  | BridgeJudged
  | KernelCall
  | BridgeAsked
  | BridgeAppOptions
  | BridgeWarning
  | BridgePageState
  | BridgeWidgets
  | FunctionCallResult
  | CompletionResult
  | OtherMessage;
