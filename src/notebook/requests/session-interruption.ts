/** Ends the work of a notebook session: a run, a code call, or the check of new code. */
import type { RunId, WorkspaceId } from '#src/base/ids.ts';
import type { SessionInterruption } from '#src/contract/wire/session.ts';
import type { NotebookRequestContext } from './request-context.ts';

export class SessionInterruptions {
  readonly #context: NotebookRequestContext;

  constructor(context: NotebookRequestContext) {
    this.#context = context;
  }

  /**
   * Interrupts the present work of a session. A run is cancelled; the caller of code gets a result.
   * When the session has no work, returns that nothing ran. Wakes nothing. Throws `not_found` and
   * `session_closed`.
   */
  interrupt(workspaceId: WorkspaceId, sessionId: string): SessionInterruption {
    const { actors, sessions, runs, work } = this.#context;
    const session = { workspaceId, id: sessionId };
    sessions.known(workspaceId, sessionId);
    actors.checkStored(session, { type: 'interrupt' });
    const peek = actors.peek(session);
    const current = peek === undefined || peek.isLost ? null : peek.snapshot.context.work;
    if (current === null) return { sessionId, status: 'idle', runId: null };
    if (current.kind !== 'run') {
      work.cancel(session, current.id);
      return { sessionId, status: 'interrupting', runId: null };
    }
    const runId = current.id as RunId;
    runs.cancel(workspaceId, runId, () => work.cancel(session, runId));
    return { sessionId, status: 'interrupting', runId };
  }
}
