/**
 * The use of open notebooks without a change of their cells: values of UI elements, calls of functions of UI elements,
 * completions of code.
 */
import { sessionStatus } from '#machines/notebook-session.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { newId } from '#src/base/ids.ts';
import { happensWithin } from '#src/base/time/happens-within.ts';
import type { CompletionResult, FunctionCallResult } from '#src/confined/processes/kernel/messages.ts';
import type {
  CallFunction,
  CompleteCode,
  Completions,
  FunctionResult,
  SetUiValues,
  UiValuesResult,
} from '#src/contract/wire/interaction.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import { charsOfValue } from '../open/held-chars.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import { type ElementEnd, elementWork } from '../work/element-work.ts';
import { deadlineOf } from '../work/session-work.ts';
import type { NotebookRequestContext } from './request-context.ts';
import { WaitingLine } from './waiting-line.ts';

type Caller = Pick<Principal, 'workspaceId' | 'userId'>;

/** How long a request waits for its turn. */
const MAX_TURN_MS = 30_000;
/** The most characters of JSON that a function may return. */
const MAX_RESULT_CHARS = 4 * 2 ** 20;
/** How long the kernel may take to complete code: its threads compete with the code that runs. */
const MAX_COMPLETION_MS = 30_000;
/** The most options, and characters of all of them, in one answer. */
const MAX_OPTIONS = 1000;
const MAX_OPTION_CHARS = 2 ** 20;
/** A request waits for its turn while the session answers with one of these errors. */
const PASSING: readonly string[] = ['session_busy', 'session_not_ready'];
const NOTHING: Completions = { prefixLength: 0, options: [], isIncomplete: true };

export class ElementCalls {
  readonly #context: NotebookRequestContext;
  /** Requests wait here for the session to be free. */
  readonly #turns = new WaitingLine('values of UI elements and function calls');
  /**
   * Requests for completions wait here for the previous one, because the kernel forgets all but the
   * latest.
   */
  readonly #completions = new WaitingLine('completions');

  constructor(context: NotebookRequestContext) {
    this.#context = context;
  }

  /**
   * Sets values of UI elements in the turn of the request, and begins to run the cells that depend on them. Rejects with the
   * refusals of the session's state, and with `quota_exceeded`; failures of cells are results. A signal that aborts later does
   * not end the run.
   */
  async setValues(
    caller: Caller,
    sessionId: string,
    { values, timeoutS }: SetUiValues,
    signal: AbortSignal,
  ): Promise<{ readonly result: Promise<UiValuesResult> }> {
    const { work, store } = this.#context;
    return this.#inTurn(caller, sessionId, signal, (session, live) => {
      const command = {
        type: 'update-ui-element',
        objectIds: Object.keys(values),
        values: Object.values(values),
      } as const;
      const ended = work.call<ElementEnd>(
        session,
        { kind: 'element', by: caller.userId, edits: false, ...deadlineOf({ timeoutS }) },
        (_, resolve) => elementWork({ command: () => command, live, store, resolve }),
      );
      const takeBack = live.setUiValues(values);
      return ended.then((end) => {
        takeBack(end.failures.filter(({ isSet }) => !isSet).map(({ elementId }) => elementId));
        return { sessionId, ...valuesResult(end) };
      });
    });
  }

  /**
   * Calls a function of a UI element in the turn of the request. Rejects as `setValues`; failures of the function are results.
   * When the signal aborts, the function is interrupted.
   */
  async callFunction(
    caller: Caller,
    sessionId: string,
    { timeoutS, ...call }: CallFunction & { readonly timeoutS: number },
    signal: AbortSignal,
  ): Promise<{ readonly result: Promise<FunctionResult> }> {
    const { work, store } = this.#context;
    return this.#inTurn(caller, sessionId, signal, (session, live) => {
      const functionCallId = newId<string>('request');
      let answer: FunctionCallResult | undefined;
      const command = { type: 'invoke-function', functionCallId, ...call } as const;
      return work
        .call<ElementEnd>(
          session,
          {
            kind: 'element',
            by: caller.userId,
            edits: false,
            signal,
            timeoutMs: timeoutS * 1000,
          },
          (_, resolve) =>
            elementWork({
              command: () => command,
              live,
              store,
              resolve,
              follow(message) {
                if (message.op === 'function-call-result' && message.functionCallId === functionCallId)
                  answer = message;
              },
            }),
        )
        .then((end) => functionResult(end, answer));
    });
  }

  /**
   * Completes code, also while the session is busy. Rejects with the refusal of a session whose kernel takes no requests, and with
   * `quota_exceeded`. When the kernel takes too long, there are no completions.
   */
  async complete(
    { workspaceId }: Caller,
    sessionId: string,
    { code, cellId }: CompleteCode,
    signal: AbortSignal,
  ): Promise<Completions> {
    const { sessions, liveNotebooks } = this.#context;
    const session = await sessions.whenReadable(workspaceId, sessionId, () =>
      sessions.ensureAwake(workspaceId, sessionId),
    );
    return this.#completions.enter(keyOf(session), async () => {
      signal.throwIfAborted();
      this.#requireUp(session);
      const live = liveNotebooks.of(session);
      const id = newId<string>('request');
      let answer: CompletionResult | undefined;
      let stop: (() => void) | undefined;
      await happensWithin(MAX_COMPLETION_MS, signal, (happened) => {
        const ask = () => live.kernel?.complete({ id, document: code, cellId: cellId ?? '' });
        stop = live.answers.expect(
          id,
          (one) => {
            answer = one;
            happened();
          },
          ask, // a page has asked in the meantime, and the kernel answers only the latest request
        );
        ask();
        return stop;
      });
      return answer === undefined ? NOTHING : completionsOf(answer);
    });
  }

  /** Throws the refusal of a session whose kernel takes no requests now. */
  #requireUp(session: ActorId): void {
    const { actors } = this.#context;
    const peek = actors.peek(session);
    if (peek === undefined) throw notFound();
    const status = sessionStatus(peek.snapshot);
    // In `ready` the chart would take a command. In all other states except `busy` it refuses the
    // command with the right code.
    if (status !== 'busy') this.#context.work.check(session, 'element', false);
  }

  /**
   * Calls `begin` in the turn of the request: after the earlier requests to this session, and once the session takes work. After 30
   * seconds it rejects with the refusal of the session.
   */
  #inTurn<T>(
    { workspaceId }: Caller,
    sessionId: string,
    signal: AbortSignal,
    begin: (session: ActorId, live: LiveNotebook) => Promise<T>,
  ): Promise<{ readonly result: Promise<T> }> {
    const { sessions, work, liveNotebooks } = this.#context;
    const deadline = performance.now() + MAX_TURN_MS;
    const isOver = () => signal.aborted || performance.now() >= deadline;
    return this.#turns.enter(keyOf({ workspaceId, id: sessionId }), async () => {
      for (;;) {
        const session = await sessions.whenReadable(workspaceId, sessionId, () =>
          sessions.ensureAwake(workspaceId, sessionId),
        );
        try {
          if (signal.aborted) throw new AppError('unavailable', 'The client has left.');
          work.check(session, 'element', false);
          return { result: begin(session, liveNotebooks.of(session)) };
        } catch (error) {
          if (!(error instanceof AppError) || !PASSING.includes(error.code) || isOver()) throw error;
        }
        await this.#whenPassed(session, deadline - performance.now(), signal);
      }
    });
  }

  /** Resolves when the time is over, or the session is in a state that it does not leave by itself. */
  async #whenPassed(session: ActorId, ms: number, signal: AbortSignal): Promise<void> {
    const { actors } = this.#context;
    const isPassing = () => actors.peek(session)?.snapshot.hasTag('passing') === true;
    if (!isPassing()) return;
    await happensWithin(ms, signal, (happened) =>
      actors.watch(session, () => {
        if (!isPassing()) happened();
      }),
    );
  }
}

function keyOf({ workspaceId, id }: ActorId): string {
  return `${workspaceId}/${id}`;
}

function valuesResult(end: ElementEnd): Omit<UiValuesResult, 'sessionId'> {
  const { status, failure, cells, unknown, failures } = end;
  const hasFailed = failures.length > 0 || cells.some((cell) => cell.status === 'error');
  return {
    status: status === 'completed' && hasFailed ? 'failed' : status,
    cells,
    unknown,
    failures,
    error: failure,
  };
}

function functionResult(
  { status, failure }: ElementEnd,
  answer: FunctionCallResult | undefined,
): FunctionResult {
  const failed = (type: string, message: string): FunctionResult => ({
    success: false,
    value: null,
    error: { type, message },
  });
  if (failure !== null) return failed(failure.code, failure.message);
  if (status === 'cancelled') return failed('function_failed', 'The function was interrupted.');
  if (answer === undefined)
    return failed('result_too_large', 'The function has returned more than the kernel can send.');
  if (!answer.found)
    return failed(
      'function_not_found',
      'The notebook has no such function: the cell of the element has not run, or has run again since.',
    );
  if (answer.failure !== null) return failed('function_failed', answer.failure);
  if (charsOfValue(answer.value) > MAX_RESULT_CHARS)
    return failed(
      'result_too_large',
      `The function has returned more than ${MAX_RESULT_CHARS / 2 ** 20} MiB.`,
    );
  return { success: true, value: answer.value, error: null };
}

function completionsOf({ prefixLength, options: all }: CompletionResult): Completions {
  let chars = 0;
  const options = all.slice(0, MAX_OPTIONS).filter(({ name, type, info }) => {
    chars += name.length + type.length + (info?.length ?? 0);
    return chars <= MAX_OPTION_CHARS;
  });
  return { prefixLength, options, isIncomplete: options.length < all.length };
}
