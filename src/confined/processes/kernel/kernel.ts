import type { KernelExit } from '../exit-classification.ts';
import type { CellOutput, KernelCellConfig, KernelMessage } from './messages.ts';

/** The notebook that a new kernel opens. */
export interface KernelLaunch {
  /** The caller's name for the kernel, for logs only; two kernels may share a name. */
  readonly id: string;
  readonly cwd: string;
  /** The folder, as a path below `cwd`, to which pages send files for elements of this kernel. It may be missing. */
  readonly elementFiles?: string;
  /** The path of the notebook's file for `__file__`: a path in `cwd` that need not exist. */
  readonly fileName?: string;
  /**
   * Environment variables. They take precedence over the few that every kernel has (PATH, HOME,
   * LANG…).
   */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Variables that take precedence over `env` and that only the kernel gets: they do not pass
   * through the kernel host.
   */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Command-line arguments, which `mo.cli_args()` parses. */
  readonly arguments?: readonly string[];
  readonly cells: readonly {
    readonly cellId: string;
    readonly code: string;
    readonly config: KernelCellConfig;
  }[];
  readonly appOptions: Readonly<Record<string, unknown>>;
  /** The header of the notebook's file, which may declare the packages it needs (PEP 723). */
  readonly script?: string | undefined;
  /** Additional requirements of the workspace (PEP 508). */
  readonly requirements?: readonly string[];
  /** The workspace whose share of the installations a missing package takes. */
  readonly workspaceId?: string;
  /** A folder of packages that take precedence over those of the Python environment. */
  readonly packages?: string;
  /**
   * The key by which other processes, such as embedded databases, count towards this kernel's
   * memory limit. Each kernel has a new one.
   */
  readonly memoryShare?: string;
  readonly uiValues?: Readonly<Record<string, unknown>>;
  /** Whether the kernel is only a check that kernels start; see kernel-proof.ts. */
  readonly isProof?: boolean;
}

/** Milliseconds until the forked process has connected, then until it is confined, then until all cells are registered. */
export interface LaunchPhases {
  readonly forkMs: number;
  readonly connectMs: number;
  readonly openMs: number;
  /** The time limit for installing the notebook's packages; absent when the notebook requests none. */
  readonly packagesMs?: number;
}

/**
 * Receives the reports of one kernel. Nothing is called before `startKernel` has returned, and
 * nothing after `exited`.
 */
export interface KernelSink {
  /**
   * Called while packages are installed before the process is forked, with the current step, and with null at the end.
   */
  installing?(step: string | null): void;
  /** Called for each difference between this kernel and the requirements of its notebook, before the process is forked. */
  noted?(difference: string): void;
  /** Called at most once, after the messages of the opening: the notebook is open, nothing has run. */
  ready(info: { readonly phases: LaunchPhases; readonly pid: number }): void;
  /**
   * Prepares the slow parts of a large message, whose JSON is unchecked, in steps of up to a millisecond. The result is
   * disposed of after the call of `messages`.
   */
  prepare?(json: unknown): Generator<undefined, Disposable>;
  /** The messages of one read of the socket, in order. */
  messages(batch: readonly KernelMessage[]): void;
  /** Called exactly once, even if the kernel never became ready. */
  exited(exit: KernelExit): void;
}

export interface ScratchpadRequest {
  readonly code: string;
  /** Whether the names that the code defines are kept for later calls with `keep`. */
  readonly keep?: boolean;
  /** The document as the code may read it; `version` counts the changes of a cell's code. */
  readonly cells: readonly {
    readonly cellId: string;
    readonly code: string;
    readonly name: string;
    readonly config: KernelCellConfig;
    readonly version: number;
  }[];
  readonly outputs?: Readonly<Record<string, CellOutput>>;
  readonly consoles?: Readonly<Record<string, readonly CellOutput[]>>;
  /** The number from which `ctx.result.revision` counts. */
  readonly revision?: number;
  /** The options that `ctx.app_options` shows. */
  readonly appOptions?: Readonly<Record<string, unknown>>;
  readonly runId: string;
  readonly traceparent?: string | undefined;
}

/** Changes of the notebook for the kernel, without a run. */
export interface CellEdits {
  /** New code, by the ids of the cells that were created or changed. */
  readonly codes: Readonly<Record<string, string>>;
  readonly configs: Readonly<Record<string, KernelCellConfig>>;
  readonly deleteIds: readonly string[];
}

/** A command of a UI element or a widget. */
export type ElementCommand =
  | {
      readonly type: 'update-ui-element';
      readonly objectIds: readonly string[];
      readonly values: readonly unknown[];
    }
  | {
      readonly type: 'model';
      readonly modelId: string;
      /** The message of the widget as marimo's page sends it: `method` is `update` or `custom`. */
      readonly message: Readonly<Record<string, unknown>>;
      /** In base64. */
      readonly buffers: readonly string[];
    }
  | {
      readonly type: 'invoke-function';
      readonly functionCallId: string;
      readonly namespace: string;
      readonly functionName: string;
      readonly args: Readonly<Record<string, unknown>>;
    }
  | {
      readonly type: 'preview-dataset-column';
      readonly sourceType: string;
      readonly source: string;
      readonly tableName: string;
      readonly columnName: string;
      readonly fullyQualifiedTableName: string | null;
    }
  | SqlCommand;

/** The place of schemas in a connection of the notebook; `engine` is the variable that has the connection. */
interface SqlPlace {
  readonly requestId: string;
  readonly engine: string;
  readonly database: string;
  /** Nested schemas, from the outside to the inside. */
  readonly schemaPath: readonly string[];
}

/** A question about a connection of the notebook, or about the text of a statement. The answer is a message for pages. */
type SqlCommand =
  | { readonly type: 'list-data-source-connection'; readonly engine: string }
  | ({ readonly type: 'list-sql-schemas' } & SqlPlace)
  | ({ readonly type: 'list-sql-tables'; readonly schema: string } & SqlPlace)
  | ({ readonly type: 'preview-sql-table'; readonly schema: string; readonly tableName: string } & SqlPlace)
  | {
      readonly type: 'validate-sql';
      readonly requestId: string;
      readonly query: string;
      /** Whether only the text is parsed, in this dialect; otherwise the connection checks it. */
      readonly onlyParse: boolean;
      readonly engine: string | null;
      readonly dialect: string | null;
    };

export interface CompletionRequest {
  /** The caller's id, which the result repeats. */
  readonly id: string;
  /** The code of the cell up to the cursor. */
  readonly document: string;
  readonly cellId: string;
}

/**
 * One kernel process. A command is a method that returns a seq; its end is the `bridge-done` message with that seq. One
 * command at a time: a command throws while `inFlight` is not null, or before the kernel is ready (a mistake of the caller).
 */
export interface Kernel {
  readonly id: string;
  readonly inFlight: number | null;
  /** The pid of the kernel's process; null until the process was forked. */
  readonly pid: number | null;
  /** The node on which the process is; null: on this machine, or not forked. */
  readonly node: string | null;
  /** The bytes in memory that the kernel has not taken: frames, and its own questions that are not answered. */
  readonly queuedBytes: number;
  /** Runs cells and their stale ancestors; `fresh` runs all their ancestors again. `codes` replaces the cells' code. */
  execute(request: {
    readonly cellIds: readonly string[];
    readonly codes: readonly string[];
    readonly fresh?: boolean;
    /** Whether cells that depend on these run as well, instead of becoming stale. */
    readonly reactive?: boolean;
    /** The W3C trace context that the code finds in its environment; undefined: none. */
    readonly traceparent?: string | undefined;
  }): number;
  configure(configs: Readonly<Record<string, KernelCellConfig>>): number;
  scratchpad(request: ScratchpadRequest): number;
  /** Changes the notebook: changed cells become stale, and nothing runs. */
  edit(edits: CellEdits): number;
  /** Sets values of UI elements and runs the cells that depend on them, or calls a function of an element. */
  element(command: ElementCommand): number;
  /**
   * Asks for completions. The answer is the message `completion-result`, also while a command is in flight. While the kernel does not read,
   * only the latest request waits, because the kernel answers only the latest one.
   */
  complete(request: CompletionRequest): void;
  /**
   * A page of this number, which is not 0, begins to follow the notebook: the kernel sends the state that only pages read, between
   * two messages `bridge-page-state`, and from then on their notifications. Null: the last page has left.
   */
  follow(page: number | null): void;
  /**
   * Asks which structural errors these cells would have with other code. Changes nothing. The
   * answer is the message `bridge-judged`.
   */
  findErrors(request: {
    readonly cellIds: readonly string[];
    /** New code of cells, by cell id. */
    readonly codes: Readonly<Record<string, string>>;
  }): number;
  /** Sends the result of a `kernel-call` in parts. */
  answerCall(id: number, parts: readonly (string | Uint8Array)[]): void;
  /**
   * Asks for one interrupt of the command in flight, even after repeated calls. Returns false when no command
   * is in flight.
   */
  interrupt(): boolean;
  /** Ends the process and all its child processes at once. */
  kill(): void;
  /** Ends the process in order: an interrupt if it is busy, marimo's own stop, and SIGKILL after a second and a half. */
  stop(): void;
  /**
   * Stops reading, so that the kernel blocks when it writes more. Until `resume` neither the kernel
   * nor an interrupt makes progress. A starting kernel is read until it is ready, because it does
   * not run notebook code yet and its start has a time limit.
   */
  pause(): void;
  resume(): void;
}
