import type { ChangeCells, ChangedCells } from '../wire/cell-changes.ts';
import type {
  CallFunction,
  CompleteCode,
  Completions,
  FunctionResult,
  SetUiValues,
  UiValuesResult,
} from '../wire/interaction.ts';
import type { ExecutionRequest } from '../wire/run.ts';
import type { NotebookSession } from '../wire/session.ts';
import { eitherSignal, pause, undoneByAbort } from './abort.ts';
import type { CallQueue } from './call-queue.ts';
import { type CodeOptions, code } from './code.ts';
import { type Connection, newKey, type RequestOptions } from './connection.ts';
import type { FollowOptions } from './event-stream.ts';
import { notebookSessions } from './notebook-sessions.ts';
import { operation } from './operation.ts';
import { type CodeOutcome, codeOutcome } from './results.ts';
import { atEnd, RunHandle, type SessionEvent, sessionEvents } from './run-handle.ts';
import { runs } from './runs.ts';

/** How long the events of a code call may come after its answer. */
const LATE_EVENTS_MS = 2_000;

/** The parts of a request to execute cells, apart from which cells. */
type Execution = Omit<Extract<ExecutionRequest, { type: 'all' }>, 'type'>;

export interface RunOptions extends RequestOptions, Execution {}

export interface SessionCodeOptions extends Omit<CodeOptions, 'toolCallId'> {
  /** Called with each piece of text that the code, or a cell that it runs, prints while it runs. */
  readonly onStdout?: ((text: string) => void) | undefined;
}

/** The parts of a session that `Troupe.open` decides. */
export interface SessionParts {
  /** The environment that was created for the session, and is closed with it. */
  readonly environmentId: string | undefined;
  /** Whether the session was opened here, and is therefore closed at the end of an `await using` block. */
  readonly isNew: boolean;
  readonly queue: CallQueue;
}

/**
 * An open notebook with its kernel. Calls wait for each other: a run or a code call begins when the one before has ended. At the end
 * of an `await using` block, a session that `open` has opened is closed, and one that was open already stays.
 */
export class Session implements AsyncDisposable {
  /** The id, which is also the notebook's. */
  readonly id: string;
  /** The execution environment in which the session is open. */
  readonly environmentId: string;
  /** The session at the time of its opening. `notebookSessions.get` returns its present state. */
  readonly opened: NotebookSession;
  readonly #connection: Connection;
  readonly #calls: ReturnType<typeof notebookSessions>;
  readonly #parts: SessionParts;

  constructor(connection: Connection, opened: NotebookSession, parts: SessionParts) {
    this.id = opened.sessionId;
    this.environmentId = opened.environmentId ?? ''; // only closed sessions have none
    this.opened = opened;
    this.#connection = connection;
    this.#calls = notebookSessions(connection);
    this.#parts = parts;
  }

  /**
   * Runs cells, by their ids, with the stale cells that they depend on; without `cells`, all of the notebook. Returns the handle at
   * once, also while the run waits for its turn. The handle gives the errors of the submission.
   */
  run(cells?: string | readonly string[], { signal, ...execution }: RunOptions = {}): RunHandle {
    const ids = typeof cells === 'string' ? [cells] : cells;
    const body: ExecutionRequest =
      ids === undefined
        ? { type: 'all', ...execution }
        : { type: 'cells', cells: ids.map((cellId) => ({ cellId })), ...execution };
    const params = { sessionId: this.id };
    const connection = this.#connection;
    const calls = runs(connection);
    // The signal does not end the request, because its answer names the run, which an abort cancels.
    const submit = () => {
      const accepted = connection.json(
        operation<'submitExecution', 202>('submitExecution', { params, body }),
      );
      return undoneByAbort(accepted, signal, ({ runId }) => calls.cancel(runId));
    };
    const submitted = this.#parts.queue.add(submit, {
      over: ({ runId }) => atEnd(calls, runId, undefined, () => {}),
      signal,
      timeoutS: execution.timeoutS,
    });
    return new RunHandle(connection, this.id, submitted);
  }

  /**
   * Runs Python outside of the cells. A Python error is a result with `success: false`. Rejects with
   * `CodeInterrupted` when the connection is lost meanwhile: the server then interrupts the code, and the
   * call is not repeated. Aborting `signal` interrupts the code, too.
   */
  code(source: string, { onStdout, ...options }: SessionCodeOptions = {}): Promise<CodeOutcome> {
    return this.#parts.queue.add(async () => {
      const toolCallId = newKey();
      const run = () => code(this.#connection).execute(this.id, source, { ...options, toolCallId });
      const result =
        onStdout === undefined
          ? await run()
          : await this.#printing(run, toolCallId, onStdout, options.signal);
      return codeOutcome(result);
    }, options);
  }

  /**
   * Changes cells, also while the session is busy: all changes in their order, or none. Nothing runs. Rejects with `stale_update` when
   * the cell of a change has another `version` than the change names, or the notebook another `updatedAt` than `expectedUpdatedAt`.
   */
  change(body: ChangeCells, options?: RequestOptions): Promise<ChangedCells> {
    return this.#calls.change(this.id, body, options);
  }

  /**
   * Sets values of UI elements, by the ids of the elements. Resolves with how the cells that depend on them ended; their outputs are
   * events.
   */
  setUiValues(body: SetUiValues, options?: RequestOptions): Promise<UiValuesResult> {
    return this.#parts.queue.add(() => this.#calls.setUiValues(this.id, body, options), options);
  }

  /**
   * Calls a function of a UI element, such as `search` of a table. Resolves also when the function fails: check `success`. Rejects with
   * `CodeInterrupted` when the connection is lost meanwhile. Aborting `signal` interrupts the function, too.
   */
  callFunction(body: CallFunction, options?: RequestOptions): Promise<FunctionResult> {
    return this.#parts.queue.add(() => this.#calls.callFunction(this.id, body, options), options);
  }

  /** Resolves with the names that may follow this code, which is that of a cell up to the cursor. The session may be busy. */
  complete(body: CompleteCode, options?: RequestOptions): Promise<Completions> {
    return this.#calls.complete(this.id, body, options);
  }

  /** Yields the current state as events and then live events, with their ids, until the session closes. */
  events(options: FollowOptions = {}): AsyncGenerator<SessionEvent, void, undefined> {
    return sessionEvents(this.#connection, this.id, options);
  }

  /**
   * Resolves with a large output, which events name with an `assetId` in place of `data`. Rejects with `not_found` when
   * the notebook shows it no more: its cell has another output, or code was called again.
   */
  asset(assetId: string, options?: RequestOptions): Promise<{ contentType: string; bytes: Uint8Array }> {
    return this.#calls.asset(this.id, assetId, options);
  }

  /**
   * Closes the session, and the environment that was created for it, unless they have ended by themselves. The notebook and its
   * history stay.
   */
  async close(options?: RequestOptions): Promise<void> {
    const { environmentId } = this.#parts;
    await unlessGone(this.#calls.close(this.id, options));
    if (environmentId !== undefined) await closeEnvironment(this.#connection, environmentId, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#parts.isNew) await this.close();
  }

  /** Calls `run` once the session's stream is live, and hands on the text that is printed until the code has ended. */
  async #printing<Result extends { readonly stdout: string }>(
    run: () => Promise<Result>,
    toolCallId: string,
    onStdout: (text: string) => void,
    signal: AbortSignal | undefined,
  ): Promise<Result> {
    const leaving = new AbortController();
    const both = eitherSignal(leaving.signal, signal);
    let printed = '';
    let nowLive: () => void = () => {};
    const live = new Promise<void>((resolve) => {
      nowLive = resolve;
    });
    const follow = async () => {
      for await (const event of this.events({ observe: true, signal: both })) {
        if (event.type === 'session.replayed') nowLive();
        if (event.type === 'console-output' && event.data.channel === 'stdout') {
          printed += event.data.text;
          onStdout(event.data.text);
        }
        if (event.type === 'execution-completed' && event.data.tool_call_id === toolCallId) return;
      }
    };
    const following = follow();
    following.catch(() => {}); // the text that is missing then is in the result
    try {
      await Promise.race([live, following]);
      const result = await run();
      await Promise.race([following, pause(LATE_EVENTS_MS, both)]).catch(() => {});
      const missing = result.stdout.startsWith(printed) ? result.stdout.slice(printed.length) : '';
      if (missing !== '') onStdout(missing);
      return result;
    } finally {
      leaving.abort();
    }
  }
}

/** Closes an execution environment, if it is still open. */
export function closeEnvironment(
  connection: Connection,
  environmentId: string,
  options?: RequestOptions,
): Promise<void> {
  return unlessGone(
    connection.json(operation('closeExecutionEnvironment', { params: { environmentId }, ...options })),
  );
}

/** Resolves when the resource is closed, even if it was closed before. */
async function unlessGone(closing: Promise<unknown>): Promise<void> {
  await closing.catch((error: unknown) => {
    if (!/_(found|closed)$/.test(Object(error).code)) throw error;
  });
}
