/** The operations on open notebooks that agents need; the notebook side provides them. */
import type { EnvironmentId, RunId, WorkspaceId } from '#src/base/ids.ts';
import type { ShownValue } from '#src/contract/outputs/representation.ts';
import type { ToolCall } from './tool.ts';

export interface NotebookOutput extends ShownValue {
  readonly channel?: string;
}

export interface NotebookCell {
  readonly cellId: string;
  readonly name: string;
  readonly code: string;
  /** Names the state of the cell's code, name and settings, for edits that name the state they replace. */
  readonly version?: number;
  readonly status: string;
  readonly output: NotebookOutput | null;
  readonly console: readonly NotebookOutput[];
}

export interface PythonResult {
  readonly success: boolean;
  readonly output: NotebookOutput | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly media: readonly NotebookOutput[];
  readonly errors: readonly {
    readonly type: string;
    readonly message: string;
    readonly cellId: string | null;
  }[];
  /** Whether the code was interrupted because it took longer than the call allows. */
  readonly isTimedOut?: boolean;
  /** The cells that the code created, changed or deleted; undefined when that is not known. */
  readonly touchedCells?: readonly string[];
}

/** A tool call of a prompt. */
export interface PromptCall extends ToolCall {
  /** The run of the prompt that the call belongs to. */
  readonly runId: RunId;
}

export interface CellsResult {
  /** The run that records the execution, if it has its own run. */
  readonly runId?: string;
  /** Whether the cells still run, because the run continues after the time limit of the call. */
  readonly isRunning?: boolean;
  readonly failure: { readonly code: string; readonly message: string } | null;
  /** The cells that ran or were to run, in their order. */
  readonly cells: readonly {
    readonly cellId: string;
    readonly status: string;
    readonly outputs: readonly NotebookOutput[];
    readonly console: readonly NotebookOutput[];
  }[];
}

/**
 * Open notebooks, by the ids of their sessions. All methods throw `AppError`: `not_found`, and refusals of the session's state.
 * Work waits a while for a kernel that is starting or busy. When its signal aborts, work is interrupted, and its promise settles
 * once the kernel has stopped.
 */
export interface Notebooks {
  /**
   * Wakes the session if it sleeps in this environment, and waits up to 30 s for its kernel, so that an agent can be bound to it.
   * Returns undefined when there is nothing to wait for. Whether the agent can be bound is decided by `checkBinding`.
   */
  prepareBinding(
    workspaceId: WorkspaceId,
    sessionId: string,
    environmentId: EnvironmentId,
    signalOf: () => AbortSignal,
  ): Promise<void> | undefined;
  /**
   * Parses a large notebook in slices if it is not in memory, so that the synchronous methods are fast afterwards. Returns
   * undefined when there is nothing to wait for.
   */
  prepare(workspaceId: WorkspaceId, sessionId: string): Promise<void> | undefined;
  /** Returns whether the session takes edits. */
  isEditable(workspaceId: WorkspaceId, sessionId: string): boolean;
  /** Returns the datasources that are selected for the notebook. */
  datasourceSlugs(workspaceId: WorkspaceId, sessionId: string): readonly string[];
  /** Throws `environment_differs` or `notebook_not_ready` when no agent of the environment can be bound to the session. */
  checkBinding(workspaceId: WorkspaceId, sessionId: string, environmentId: EnvironmentId): void;
  /** Resolves with the ids of all cells, in the notebook's order. */
  cellIds(workspaceId: WorkspaceId, sessionId: string): Promise<readonly string[]>;
  /** Resolves with the cells that have these ids, or with all, in the notebook's order. */
  cells(
    workspaceId: WorkspaceId,
    sessionId: string,
    cellIds?: readonly string[],
  ): Promise<readonly NotebookCell[]>;
  runPython(
    workspaceId: WorkspaceId,
    sessionId: string,
    code: string,
    call: NotebookCall,
  ): Promise<PythonResult>;
  runCells(
    workspaceId: WorkspaceId,
    sessionId: string,
    cellIds: readonly string[],
    call: NotebookCall,
  ): Promise<CellsResult>;
}

/** A tool call on a notebook, and the user whose prompt it answers. */
interface NotebookCall extends PromptCall {
  readonly by: string;
}

/**
 * The operations of one tool call on an open notebook. Each method rejects with the refusal of the notebook's
 * session.
 */
export interface OpenNotebook {
  /** Resolves with the ids of all cells, in the notebook's order. */
  cellIds(): Promise<readonly string[]>;
  /** Resolves with the cells that have these ids, or with all, in the notebook's order. */
  cells(cellIds?: readonly string[]): Promise<readonly NotebookCell[]>;
  runPython(code: string): Promise<PythonResult>;
  runCells(cellIds: readonly string[]): Promise<CellsResult>;
}
