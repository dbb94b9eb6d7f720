import type { Work } from '#machines/notebook-session.ts';
import type { ActorRuntime } from '#src/actors/runtime.ts';
import type { RunId, SessionId, WorkspaceId } from '#src/core/ids.ts';
import type { RunBook } from '#src/runs/run-book.ts';
import {
  type ExecutionRequest,
  edits,
  type RunCommand,
  refuseStructuralErrors,
  requestedCells,
} from './execution-plan.ts';
import { type NotebookSessions, sessionAddress } from './notebook-sessions.ts';

export interface SubmittedRun {
  readonly runId: RunId;
  readonly sessionId: string;
  readonly status: 'running';
}

/** Executions: a request becomes a durable run of the session's kernel. */
export class Executions {
  readonly #actors: ActorRuntime;
  readonly #sessions: NotebookSessions;
  readonly #runs: RunBook;

  constructor(actors: ActorRuntime, sessions: NotebookSessions, runs: RunBook) {
    this.#actors = actors;
    this.#sessions = sessions;
    this.#runs = runs;
  }

  /**
   * Submits a run. Throws `not_found`, what the session's state refuses (`session_busy`, `session_not_ready`,
   * `session_not_editable`, …), `unknown_cell`, `duplicate_cell` or `structural_error`; nothing has changed then.
   */
  submit(workspaceId: WorkspaceId, sessionId: string, request: ExecutionRequest): SubmittedRun {
    const address = sessionAddress(workspaceId, sessionId);
    const order = (work: Work, command: RunCommand) => ({
      type: 'execute',
      work,
      edits: edits(request),
      command,
    });
    const draft: RunCommand = {
      type: 'run',
      cellIds: [],
      configured: [],
      cacheMode: request.cacheMode ?? 'default',
    };
    this.#sessions.record(workspaceId, sessionId);
    this.#actors.check(address, order({ kind: 'run', id: '' }, draft));

    const live = this.#sessions.live(workspaceId, sessionId);
    const cellIds = requestedCells(request, live.view);
    const overrides = request.type === 'cells' ? request.cells : [];
    const overridden = new Set(
      overrides.filter(({ code }) => code !== undefined).map(({ cellId }) => cellId),
    );
    refuseStructuralErrors(cellIds, live.view, (cellId) =>
      overridden.has(cellId) ? [] : (live.view.get(cellId)?.structural ?? []),
    );
    if (edits(request)) live.override(overrides);
    const configured = overrides.filter(({ config }) => config !== undefined).map(({ cellId }) => cellId);
    const runId = this.#runs.begin(workspaceId, sessionId as SessionId, 'notebook', request);
    this.#actors.ask(address, order({ kind: 'run', id: runId }, { ...draft, cellIds, configured }));
    return { runId, sessionId, status: 'running' };
  }

  /** Asks for a run's cancellation: its kernel is interrupted at once. */
  cancel(workspaceId: WorkspaceId, sessionId: string, runId: RunId): void {
    this.#actors.tell(sessionAddress(workspaceId, sessionId), { type: 'cancel', workId: runId });
  }
}
