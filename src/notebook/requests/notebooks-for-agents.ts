/** Open notebooks as agents use them. Work waits a while for a kernel that starts or is busy. */
import { isStarting } from '#machines/notebook-session.ts';
import { AppError, type Failure } from '#src/base/errors/errors.ts';
import type { EnvironmentId, WorkspaceId } from '#src/base/ids.ts';
import { happensWithin } from '#src/base/time/happens-within.ts';
import type { TraceContext } from '#src/base/tracing/trace-context.ts';
import type { CellOutput } from '#src/confined/processes/kernel/messages.ts';
import type { CodeResult } from '#src/contract/wire/session.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import { shownStatus } from '../open/view.ts';
import { configOf } from '../saved/document.ts';
import { keepOutputs } from '../saved/saved-outputs.ts';
import { type CellsEnd, cellWork } from '../work/cell-work.ts';
import { refuseStructuralErrors } from '../work/execution-request.ts';
import type { CodeCalls } from './code-calls.ts';
import type { NotebookRequestContext } from './request-context.ts';

export interface AgentCall {
  readonly callId: string;
  /** The user whose prompt the agent answers. */
  readonly by: string;
  /** The agent's run: the events of the call's work carry it. */
  readonly runId: string;
  readonly signal: AbortSignal;
  /** The trace of the call. */
  readonly trace: TraceContext | undefined;
}

interface ShownOutput {
  readonly channel: string;
  readonly mimetype: string;
  readonly data: unknown;
}

export interface RanCells {
  readonly failure: Failure | null;
  readonly cells: readonly {
    readonly cellId: string;
    readonly status: string;
    readonly outputs: readonly ShownOutput[];
    readonly console: readonly ShownOutput[];
  }[];
}

const MAX_WAIT_MS = 30_000;

export class NotebooksForAgents {
  readonly #context: NotebookRequestContext;
  readonly #codeCalls: CodeCalls;

  constructor(context: NotebookRequestContext, codeCalls: CodeCalls) {
    this.#context = context;
    this.#codeCalls = codeCalls;
  }

  /**
   * Parses, in slices, a large notebook that is not in memory, so that the synchronous methods need no time for it. Returns
   * undefined when there is nothing to wait for.
   */
  prepare(workspaceId: WorkspaceId, sessionId: string): Promise<void> | undefined {
    return this.#context.sessions.prepare(workspaceId, sessionId);
  }

  /**
   * Prepares a binding as described at `Notebooks.prepareBinding`. Rejects when the signal aborts.
   */
  prepareBinding(
    workspaceId: WorkspaceId,
    sessionId: string,
    environmentId: EnvironmentId,
    signalOf: () => AbortSignal,
  ): Promise<void> | undefined {
    const { sessions, actors } = this.#context;
    const peek = actors.peek({ workspaceId, id: sessionId });
    const isThere = peek?.snapshot.context.environmentId === environmentId;
    return isThere
      ? sessions.whenAwake(workspaceId, sessionId, signalOf)
      : this.prepare(workspaceId, sessionId);
  }

  /** Whether the session takes edits. Throws `not_found` unless a session was ever opened on the notebook. */
  isEditable(workspaceId: WorkspaceId, sessionId: string): boolean {
    const { sessions, actors } = this.#context;
    return actors.peek(sessions.ensureAwake(workspaceId, sessionId))?.snapshot.context.mode === 'edit';
  }

  /** Throws the session's refusal of an agent in this environment: `environment_differs`, `notebook_not_ready`. */
  checkBinding(workspaceId: WorkspaceId, sessionId: string, environmentId: EnvironmentId): void {
    const { sessions, actors } = this.#context;
    const session = sessions.ensureAwake(workspaceId, sessionId);
    actors.check(session, { type: 'shareEnvironment', environmentId });
    const peek = actors.peek(session);
    if (peek !== undefined && isStarting(peek.snapshot))
      throw new AppError('notebook_not_ready', 'The kernel of the notebook session has not started yet.', {
        headers: { 'retry-after': '1' },
      });
    actors.check(session, { type: 'bindAgent' });
  }

  /** The datasources that are selected for the notebook. */
  datasourceSlugs(workspaceId: WorkspaceId, sessionId: string): readonly string[] {
    return this.#live(workspaceId, sessionId).document.datasourceSlugs;
  }

  async cellIds(workspaceId: WorkspaceId, sessionId: string): Promise<readonly string[]> {
    await this.prepare(workspaceId, sessionId);
    return this.#live(workspaceId, sessionId).view.cells.map(({ id }) => id);
  }

  /** Resolves with the cells that have these ids, or with all, in the notebook's order. */
  async cells(workspaceId: WorkspaceId, sessionId: string, cellIds?: readonly string[]) {
    await this.prepare(workspaceId, sessionId);
    const { cells } = this.#live(workspaceId, sessionId).view;
    const asked = cellIds && new Set(cellIds);
    const found = asked === undefined ? cells : cells.filter(({ id }) => asked.has(id));
    return found.map((cell) => ({
      cellId: cell.id,
      name: configOf(cell.options).name,
      code: cell.code,
      status: shownStatus(cell),
      output: cell.output,
      console: cell.console.entries(),
    }));
  }

  /** Runs code outside of cells. Throws the refusal of the session's state; failures of the code are results. */
  async runPython(
    workspaceId: WorkspaceId,
    sessionId: string,
    code: string,
    { callId, by, runId, signal, trace }: AgentCall,
  ): Promise<CodeResult & { readonly touchedCells: readonly string[] }> {
    await this.#whenFree(workspaceId, sessionId, signal);
    const call = { code, by, keep: true, toolCallId: callId, runId, trace };
    const { result } = await this.#codeCalls.begin(workspaceId, sessionId, call, signal);
    // The call has the session to itself until it ends, so every change until then is made by the
    // call.
    const before = statesOf(this.#live(workspaceId, sessionId));
    const ended = await result;
    return { ...ended, touchedCells: touchedSince(before, this.#live(workspaceId, sessionId)) };
  }

  /** Runs cells. Throws the refusal of the session's state, and `structural_error`; failures of cells are results. */
  async runCells(
    workspaceId: WorkspaceId,
    sessionId: string,
    asked: readonly string[],
    { by, runId, signal, trace }: AgentCall,
  ): Promise<RanCells> {
    const { work, store } = this.#context;
    const session = await this.#whenFree(workspaceId, sessionId, signal);
    work.check(session, 'code', false);
    const live = this.#live(workspaceId, sessionId);
    const cellIds = live.view.cells.map(({ id }) => id).filter((id) => asked.includes(id));
    refuseStructuralErrors(live.view.ancestors(cellIds), (cellId) => live.view.get(cellId)?.structural ?? []);
    const keep = (ran: ReadonlySet<string>) => keepOutputs(store, live, ran);
    const end = await work.call<CellsEnd>(session, { kind: 'code', by, edits: false, signal }, (_, resolve) =>
      cellWork({ runId, trace, cellIds, live, keep, resolve }),
    );
    return ranCells(end, live);
  }

  #live(workspaceId: WorkspaceId, sessionId: string): LiveNotebook {
    const session = this.#context.sessions.ensureAwake(workspaceId, sessionId);
    return this.#context.liveNotebooks.of(session);
  }

  /** Resolves when the session is in a state that it does not leave by itself, or after 30 s; the chart then decides. */
  async #whenFree(workspaceId: WorkspaceId, sessionId: string, signal: AbortSignal): Promise<ActorId> {
    const { sessions, actors } = this.#context;
    await this.prepare(workspaceId, sessionId);
    const session = sessions.ensureAwake(workspaceId, sessionId);
    const isPassing = () => actors.peek(session)?.snapshot.hasTag('passing') === true;
    if (!isPassing()) return session;
    await happensWithin(MAX_WAIT_MS, signal, (happened) =>
      actors.watch(session, () => {
        if (!isPassing()) happened();
      }),
    );
    signal.throwIfAborted();
    return session;
  }
}

/**
 * The members that change with each edit of a cell: the version of its code, and its settings,
 * which are replaced as a whole.
 */
type CellStates = ReadonlyMap<string, { readonly version: number; readonly options: object }>;

function statesOf({ view }: LiveNotebook): CellStates {
  return new Map(view.cells.map(({ id, version, options }) => [id, { version, options }]));
}

/** Returns the ids of new or changed cells, and then the ids of deleted cells. */
function touchedSince(before: CellStates, live: LiveNotebook): string[] {
  const now = statesOf(live);
  const touched = [...now].flatMap(([id, { version, options }]) => {
    const known = before.get(id);
    return known?.version === version && known.options === options ? [] : [id];
  });
  return [...touched, ...[...before.keys()].filter((id) => !now.has(id))];
}

function ranCells({ failure, cells }: CellsEnd, live: LiveNotebook): RanCells {
  return {
    failure,
    cells: cells.map(({ cellId, status }) => {
      const cell = live.view.get(cellId);
      const outputs: readonly CellOutput[] = cell?.output == null ? [] : [cell.output];
      return { cellId, status, outputs, console: cell?.console.entries() ?? [] };
    }),
  };
}
