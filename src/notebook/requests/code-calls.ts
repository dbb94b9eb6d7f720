import type { WorkspaceId } from '#src/base/ids.ts';
import type { CodeResult } from '#src/contract/wire/session.ts';
import { type CodeCall, type CodeEnd, codeWork } from '../work/code-work.ts';
import { deadlineOf } from '../work/session-work.ts';
import type { NotebookRequestContext } from './request-context.ts';

type CallArguments = [workspaceId: WorkspaceId, sessionId: string, call: CodeCall, signal: AbortSignal];

/** Runs code in the live kernel of an edit session, outside of any cell. No run record is made. */
export class CodeCalls {
  readonly #context: NotebookRequestContext;

  constructor(context: NotebookRequestContext) {
    this.#context = context;
  }

  /**
   * Begins a call. Rejects with `not_found` or the refusal of the session's state. Failures of the code, and of its kernel, are
   * results. When `signal` aborts, the code is interrupted; the session is free again once the code has ended.
   */
  async begin(...call: CallArguments): Promise<{ readonly result: Promise<CodeResult> }> {
    const [workspaceId, sessionId] = call;
    const { sessions } = this.#context;
    return sessions.whenReadable(workspaceId, sessionId, () => ({ result: this.#execute(...call) }));
  }

  #execute(...[workspaceId, sessionId, call, signal]: CallArguments): Promise<CodeResult> {
    const { store, sessions, work, liveNotebooks } = this.#context;
    const { by, timeoutS, toolCallId, runId } = call;
    const session = sessions.ensureAwake(workspaceId, sessionId);
    work.check(session, 'code', true);
    const live = liveNotebooks.of(session);
    const publish = ({ result, event: data }: CodeEnd) => {
      const ids = toolCallId === undefined ? {} : { tool_call_id: toolCallId, toolCallId };
      const event = { type: 'execution-completed', sessionId, data: { ...data, ...ids } } as const;
      live.stream.publish(runId === undefined ? event : { ...event, runId }, live.committed());
      return result;
    };
    return work
      .call<CodeEnd>(
        session,
        { kind: 'code', by, edits: true, signal, ...deadlineOf({ timeoutS }) },
        (id, resolve) => codeWork(store, call, { id, live, resolve }),
      )
      .then(publish);
  }
}
