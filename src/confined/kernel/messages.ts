/**
 * The messages of a kernel, as the server reads them. Members are camelCase; CellOutput and CellError are marimo's own
 * objects, passed through untouched because they are saved and handed back to marimo as they are.
 */
import type { OutputTable } from '#src/wire/output.ts';

/** One value shown or printed. Errors have channel `marimo-error` and a list of CellError as data. */
export interface CellOutput {
  readonly channel: 'stdout' | 'stderr' | 'stdin' | 'pdb' | 'output' | 'marimo-error' | 'media';
  readonly mimetype: string;
  readonly data: string | readonly CellError[] | Readonly<Record<string, unknown>>;
  readonly timestamp: number;
  /** The output as text; added by the bridge. Outputs saved by earlier versions have none. */
  readonly text?: string;
  /** Its first rows, when it is a table. */
  readonly table?: OutputTable;
}

/** marimo's tagged error; which other members are there depends on `type`. */
export interface CellError {
  readonly type: string;
  readonly msg?: string;
  readonly exception_type?: string | null;
  readonly raising_cell?: string | null;
  readonly traceback?: string | null;
  readonly lineno?: number | null;
  /** `multiple-defs`: the variable, and the other cells that define it. */
  readonly name?: string;
  readonly cells?: readonly string[];
  /** `cycle`, `setup-refs`: `[cell, variables, cell]` per edge. */
  readonly edges_with_vars?: readonly unknown[];
}

export interface CellConfig {
  readonly disabled?: boolean;
  readonly hideCode?: boolean;
  readonly expandOutput?: boolean;
  readonly column?: number | null;
}

/** A partial update of one cell: null leaves a member as it is. An empty `console` clears it, entries append. */
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

/** The whole variable graph, which replaces the earlier graph. */
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
      readonly config: CellConfig;
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
  | { readonly type: 'set-config'; readonly cellId: string; readonly config: CellConfig };

/** Changes to apply as one. Those with source `kernel` only confirm the order we gave. */
export interface DocumentTransaction {
  readonly op: 'notebook-document-transaction';
  readonly source: string;
  readonly changes: readonly DocumentChange[];
}

export interface MissingPackages {
  readonly op: 'missing-package-alert';
  readonly packages: readonly string[];
}

/** The kernel process is there and has shown its token. `hostMs` is its own count since the fork. */
export interface BridgeReady {
  readonly op: 'bridge-ready';
  readonly hostMs: number | null;
}

/** How the last run of a cell ended; null: it has not run in this kernel. */
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
  /** Structural errors: while there are any, the cell cannot run. */
  readonly errors: readonly CellError[];
}

/** The exact state of every cell after one command. `seq` is null for a command that the kernel gave itself. */
export interface BridgeDone {
  readonly op: 'bridge-done';
  readonly seq: number | null;
  readonly type: string;
  readonly error: string | null;
  readonly interrupted: boolean;
  readonly cells: ReadonlyMap<string, CellVerdict>;
}

/** Structural errors there would be with other code, of the cells that were asked about and all they depend on. */
export interface BridgeJudged {
  readonly op: 'bridge-judged';
  readonly errors: ReadonlyMap<string, readonly CellError[]>;
}

/** Notebook code asks its server a question; the answer carries the same id. The members are those of the method. */
export interface KernelCall {
  readonly op: 'kernel-call';
  readonly id: number;
  readonly method: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Code mode is about to run these cells, which cannot run. Their errors are reported again. */
export interface BridgeAsked {
  readonly op: 'bridge-asked';
  readonly cells: readonly string[];
}

/** Code mode has set options of the app. */
export interface BridgeAppOptions {
  readonly op: 'bridge-app-options';
  readonly options: Readonly<Record<string, unknown>>;
}

/** Something that a cell shows cannot be sent, for a reason that is the end of a sentence. The cell's stderr says the same. */
export interface BridgeWarning {
  readonly op: 'bridge-warning';
  readonly cellId: string;
  /** The lost thing: `An output` or `A figure`. */
  readonly what: string;
  readonly reason: string;
}

/** A notification the server has no use for by itself, with all its members as they came. */
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
  | OtherMessage;
