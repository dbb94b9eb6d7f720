import { newId, type WorkspaceId } from '#src/core/ids.ts';
import type { Store } from '#storage/store.ts';
import { type CodeResult, codeWork } from './code-work.ts';
import type { LiveNotebooks } from './live-notebooks.ts';
import type { NotebookSessions } from './notebook-sessions.ts';
import type { SessionActors } from './session-actor.ts';

export interface CodeCall {
  readonly code: string;
  /** Echoed on the `execution-completed` event. */
  readonly toolCallId: string | undefined;
}

export interface CodeCallsOptions {
  readonly store: Store;
  readonly sessions: NotebookSessions;
  readonly sessionActors: SessionActors;
  readonly liveNotebooks: LiveNotebooks;
}

/** Code run in the live kernel of an edit session, outside of any cell. No run record is made. */
export class CodeCalls {
  readonly #options: CodeCallsOptions;

  constructor(options: CodeCallsOptions) {
    this.#options = options;
  }

  /**
   * Throws `not_found` or what the session's state refuses, at once. Failures of the code, and of its kernel, are results.
   * When `signal` aborts, the code is interrupted; the session is free again once it has ended.
   */
  execute(
    workspaceId: WorkspaceId,
    sessionId: string,
    { code, toolCallId }: CodeCall,
    signal: AbortSignal,
  ): Promise<CodeResult> {
    const { store, sessions, sessionActors, liveNotebooks } = this.#options;
    const session = sessions.ensureAwake(workspaceId, sessionId);
    sessionActors.check(session, 'code', true);
    const live = liveNotebooks.of(session);
    const id = newId('request');
    let end: (result: CodeResult) => void = () => {};
    const ended = new Promise<CodeResult>((resolve) => {
      end = resolve;
    });
    sessionActors.start(
      session,
      { kind: 'code', id },
      true,
      codeWork({ id, code, live, store, resolve: end }),
    );
    const interrupt = () => sessionActors.actors.tell(session, { type: 'cancel', workId: id });
    signal.addEventListener('abort', interrupt, { once: true });
    return ended.then((result) => {
      signal.removeEventListener('abort', interrupt);
      const data = { ...result, ...(toolCallId === undefined ? {} : { toolCallId }) };
      live.stream.publish({ type: 'execution-completed', sessionId, data }, live.committed());
      return result;
    });
  }
}
