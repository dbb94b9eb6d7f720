import type { KernelExit } from './exit-classification.ts';
import type { BridgeDone, CellConfig, CellOutput, KernelMessage } from './messages.ts';

/** A notebook as one new kernel is to open it. */
export interface KernelLaunch {
  /** The caller's name for the kernel, in logs only; two kernels may share it. */
  readonly id: string;
  readonly cwd: string;
  /** Wins over the few variables that every kernel has (PATH, HOME, LANG…). */
  readonly env: Readonly<Record<string, string>>;
  readonly cells: readonly { readonly cellId: string; readonly code: string; readonly config: CellConfig }[];
  readonly appOptions: Readonly<Record<string, unknown>>;
  readonly uiValues?: Readonly<Record<string, unknown>>;
}

/** Milliseconds of each step: until the forked process answers, until it is confined and shows its token, until all cells are registered. */
export interface LaunchPhases {
  readonly forkMs: number;
  readonly connectMs: number;
  readonly openMs: number;
}

/** Where one kernel reports. Nothing is called before `startKernel` has returned, nothing after `exited`. */
export interface KernelSink {
  /** Once, or never: the notebook is open, nothing has run. The messages of the open came before. */
  ready(info: { readonly phases: LaunchPhases; readonly done: BridgeDone; readonly pid: number }): void;
  /** All that one read of the socket brought, in order. */
  messages(batch: readonly KernelMessage[]): void;
  /** Exactly once, always, also when the kernel never became ready. */
  exited(exit: KernelExit): void;
}

export interface ScratchpadRequest {
  readonly code: string;
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
  /** What `ctx.app_options` shows. */
  readonly appOptions?: Readonly<Record<string, unknown>>;
  readonly runId: string;
}

/**
 * One kernel process. A command is a method that answers a seq; its end is the `bridge-done` message with that seq. One
 * command at a time: giving another while `inFlight` is not null, or before ready, throws (a mistake of the caller).
 */
export interface Kernel {
  readonly id: string;
  readonly inFlight: number | null;
  /** Runs cells and their stale ancestors; `fresh` runs all their ancestors again. `codes` replaces the cells' code. */
  execute(request: {
    readonly cellIds: readonly string[];
    readonly codes: readonly string[];
    readonly fresh?: boolean;
  }): number;
  /** Changes the notebook without running anything. */
  edit(request: {
    readonly codes: Readonly<Record<string, string>>;
    readonly configs: Readonly<Record<string, CellConfig>>;
    readonly deleteIds: readonly string[];
  }): number;
  configure(configs: Readonly<Record<string, CellConfig>>): number;
  scratchpad(request: ScratchpadRequest): number;
  /** Any other command of marimo's, by its wire name and members. */
  command(type: string, fields: Readonly<Record<string, unknown>>): number;
  /** Legal at any time once ready; answered by a bridge-done with the returned token, which may cover several updates. */
  setUiElements(values: Readonly<Record<string, unknown>>): string;
  /** The answer to a `kernel-call`: the parts of one JSON text. */
  answerCall(id: number, json: readonly (string | Uint8Array)[]): void;
  /** Asks for one interrupt of the command in flight, however often it is called; false when nothing is in flight. */
  interrupt(): boolean;
  /** Ends the process and all it started, at once. */
  kill(): void;
  /** Ends it in good order: interrupt if busy, marimo's own stop, and SIGKILL after a second and a half. */
  stop(): void;
  /** Stops reading: a kernel that goes on writing blocks. Only `resume` lets it, and an interrupt of it, proceed. */
  pause(): void;
  resume(): void;
}
