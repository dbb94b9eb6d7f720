import type { KernelExit } from '../exit-classification.ts';
import type { BridgeDone, CellConfig, CellOutput, KernelMessage } from './messages.ts';

/** A notebook as one new kernel is to open it. */
export interface KernelLaunch {
  /** The caller's name for the kernel, in logs only; two kernels may share it. */
  readonly id: string;
  readonly cwd: string;
  /** The notebook's own file, as `__file__` names it: a place in `cwd`, where no such file need be. */
  readonly fileName?: string;
  /** Environment variables. They win over the few that every kernel has (PATH, HOME, LANG…). */
  readonly env: Readonly<Record<string, string>>;
  /** Variables that win over `env` and that only the kernel gets: they do not pass through the kernel host. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Command-line arguments, which `mo.cli_args()` parses. */
  readonly arguments?: readonly string[];
  readonly cells: readonly { readonly cellId: string; readonly code: string; readonly config: CellConfig }[];
  readonly appOptions: Readonly<Record<string, unknown>>;
  /** The header of the notebook's file, which may declare the packages it needs (PEP 723). */
  readonly script?: string | undefined;
  /** Additional requirements of the workspace (PEP 508). */
  readonly requirements?: readonly string[];
  /** A folder of packages that win over the packages of the Python environment. */
  readonly packages?: string;
  /** By which other processes, such as embedded databases, count towards this kernel's limit of memory. New for each kernel. */
  readonly memoryShare?: string;
  readonly uiValues?: Readonly<Record<string, unknown>>;
  /** Whether it only proves that kernels start; see kernel-proof.ts. */
  readonly isProof?: boolean;
}

/** Milliseconds until the forked process has connected, then until it is confined, then until all cells are registered. */
export interface LaunchPhases {
  readonly forkMs: number;
  readonly connectMs: number;
  readonly openMs: number;
  /** The time until the packages of the notebook were there, if it asks for any. */
  readonly packagesMs?: number;
}

/** Gets the reports of one kernel. Nothing is called before `startKernel` has returned, and nothing after `exited`. */
export interface KernelSink {
  /**
   * Called while packages are installed before the process is forked, with the current step, and with null at the end.
   */
  installing?(step: string | null): void;
  /** Called for each difference between this kernel and the requirements of its notebook, before the process is forked. */
  noted?(difference: string): void;
  /** Called at most once, after the messages of the opening: the notebook is open, nothing has run. */
  ready(info: { readonly phases: LaunchPhases; readonly done: BridgeDone; readonly pid: number }): void;
  /**
   * Prepares the slow parts of a large message, whose JSON is unchecked, in steps of up to a millisecond. The result is
   * disposed of after the call of `messages`.
   */
  prepare?(json: unknown): Generator<undefined, Disposable>;
  /** The messages of one read of the socket, in order. */
  messages(batch: readonly KernelMessage[]): void;
  /** Always called exactly once, also when the kernel never became ready. */
  exited(exit: KernelExit): void;
}

export interface ScratchpadRequest {
  readonly code: string;
  /** Whether the names that the code defines stay for later calls with `keep`. */
  readonly keep?: boolean;
  /** The document as the code may read it; `version` counts the changes of a cell's code. */
  readonly cells: readonly {
    readonly cellId: string;
    readonly code: string;
    readonly name: string;
    readonly config: CellConfig;
    readonly version: number;
  }[];
  readonly outputs?: Readonly<Record<string, CellOutput>>;
  readonly consoles?: Readonly<Record<string, readonly CellOutput[]>>;
  /** Base of `ctx.result.revision`. */
  readonly revision?: number;
  /** The options that `ctx.app_options` shows. */
  readonly appOptions?: Readonly<Record<string, unknown>>;
  readonly runId: string;
  readonly traceparent?: string | undefined;
}

/**
 * One kernel process. A command is a method that returns a seq; its end is the `bridge-done` message with that seq. One
 * command at a time: a command throws while `inFlight` is not null, or before the kernel is ready (a mistake of the caller).
 */
export interface Kernel {
  readonly id: string;
  readonly inFlight: number | null;
  /** The pid of its process; null until it was forked. */
  readonly pid: number | null;
  /** Runs cells and their stale ancestors; `fresh` runs all their ancestors again. `codes` replaces the cells' code. */
  execute(request: {
    readonly cellIds: readonly string[];
    readonly codes: readonly string[];
    readonly fresh?: boolean;
    /** The W3C trace context that the code finds in its environment; undefined: none. */
    readonly traceparent?: string | undefined;
  }): number;
  configure(configs: Readonly<Record<string, CellConfig>>): number;
  scratchpad(request: ScratchpadRequest): number;
  /** Asks which structural errors these cells would have with other code. The answer is `bridge-judged`. Changes nothing. */
  findErrors(request: {
    readonly cellIds: readonly string[];
    /** New code of cells, by cell id. */
    readonly codes: Readonly<Record<string, string>>;
  }): number;
  /** Sends the result of a `kernel-call`: the parts of one JSON text. */
  answerCall(id: number, json: readonly (string | Uint8Array)[]): void;
  /** Asks for one interrupt of the command in flight, however often it is called; false when nothing is in flight. */
  interrupt(): boolean;
  /** Ends the process and all it started, at once. */
  kill(): void;
  /** Ends the process in order: an interrupt if it is busy, marimo's own stop, and SIGKILL after a second and a half. */
  stop(): void;
  /**
   * Stops reading, so that the kernel blocks when it goes on writing. Until `resume` neither the kernel nor
   * an interrupt of it proceeds.
   * A kernel that is starting is read until it is ready: it runs no notebook code yet, and its start has a time limit.
   */
  pause(): void;
  resume(): void;
}
