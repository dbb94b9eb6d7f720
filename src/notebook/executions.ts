import { newId, type RunId, type SessionId, type WorkspaceId } from '#src/core/ids.ts';
import type { RunBook } from '#src/runs/run-book.ts';
import type { Store } from '#storage/store.ts';
import { checkWork, type Judgement } from './check-work.ts';
import { type ExecutionRequest, edits, refuseStructuralErrors, requestedCells } from './execution-plan.ts';
import type { LiveNotebooks } from './live-notebooks.ts';
import type { NotebookSessions } from './notebook-sessions.ts';
import type { ErrorHint } from './run-recorder.ts';
import { runWork } from './run-work.ts';
import type { SessionActors } from './session-actor.ts';

export interface SubmittedRun {
  readonly runId: RunId;
  readonly sessionId: string;
  readonly status: 'running';
}

export interface ExecutionsOptions {
  readonly store: Store;
  readonly sessions: NotebookSessions;
  readonly sessionActors: SessionActors;
  readonly liveNotebooks: LiveNotebooks;
  readonly runs: RunBook;
  /** Says in a run's error which limit of the kernel has ended it. */
  readonly hint: ErrorHint;
}

/** Executions: a request becomes a durable run of the session's kernel. */
export class Executions {
  readonly #options: ExecutionsOptions;

  constructor(options: ExecutionsOptions) {
    this.#options = options;
  }

  /**
   * Submits a run. Throws `not_found`, what the session's state refuses (`session_busy`, `session_not_ready`,
   * `session_not_editable`, …), `unknown_cell`, `duplicate_cell` or `structural_error`; nothing has changed then.
   * New code is judged by the kernel first; meanwhile the session is busy.
   */
  async submit(
    workspaceId: WorkspaceId,
    sessionId: string,
    request: ExecutionRequest,
  ): Promise<SubmittedRun> {
    const { sessions, sessionActors, liveNotebooks, runs, store, hint } = this.#options;
    const session = sessions.ensureAwake(workspaceId, sessionId);
    sessionActors.check(session, 'run', edits(request));
    const live = liveNotebooks.of(session);
    const cellIds = requestedCells(request, live.view);
    const changes = request.type === 'cells' ? request.cells : [];
    const codes = changes.flatMap(({ cellId, code }) => {
      const isNew = code !== undefined && code !== live.view.get(cellId)?.code;
      return isNew ? [[cellId, code] as const] : [];
    });
    if (codes.length === 0) {
      refuseStructuralErrors(
        live.view.ancestors(cellIds),
        (cellId) => live.view.get(cellId)?.structural ?? [],
      );
    } else {
      const judgement = await this.#judge(workspaceId, sessionId, Object.fromEntries(codes), cellIds);
      refuseStructuralErrors(judgement.keys(), (cellId) => judgement.get(cellId) ?? []);
    }
    // The session may have been taken while the kernel judged; from here to the end nothing can come between.
    sessionActors.check(session, 'run', edits(request));
    runs.admit(workspaceId);
    if (edits(request)) live.override(changes);
    const configured = changes.filter(({ config }) => config !== undefined).map(({ cellId }) => cellId);
    const runId = runs.begin(workspaceId, sessionId as SessionId, 'notebook', request);
    const cacheMode = request.cacheMode ?? 'default';
    const plan = runWork({ runId, cellIds, configured, cacheMode, live, runs, store, hint });
    sessionActors.start(session, { kind: 'run', id: runId }, edits(request), plan);
    return { runId, sessionId, status: 'running' };
  }

  /** Asks for a run's cancellation: its kernel is interrupted at once. */
  cancel(workspaceId: WorkspaceId, sessionId: string, runId: RunId): void {
    const { actors } = this.#options.sessionActors;
    actors.tell({ workspaceId, id: sessionId }, { type: 'cancel', workId: runId });
  }

  #judge(
    workspaceId: WorkspaceId,
    sessionId: string,
    codes: Readonly<Record<string, string>>,
    cellIds: readonly string[],
  ): Promise<Judgement> {
    return new Promise((resolve, reject) => {
      const work = { kind: 'check', id: newId('request') } as const;
      const session = { workspaceId, id: sessionId };
      this.#options.sessionActors.start(session, work, true, checkWork({ codes, cellIds, resolve, reject }));
    });
  }
}
