import type { ActorId } from '#src/actors/address.ts';
import { AppError } from '#src/core/errors.ts';
import type { RunId, SessionId, WorkspaceId } from '#src/core/ids.ts';
import { preparedJson } from '#src/core/json/json-write.ts';
import { prepareStrings } from '#src/core/json/prepared-strings.ts';
import type { Log } from '#src/core/log.ts';
import type { Principal } from '#src/core/principal.ts';
import type { RunRepository } from '#src/runs/run-repository.ts';
import type { TraceContext } from '#src/tracing/trace-context.ts';
import type { ExecutionRequest, SubmittedRun } from '#src/wire/run.ts';
import { reserveMemory } from '#storage/record-memory.ts';
import type { Store } from '#storage/store.ts';
import { labelsOf } from './cell-label.ts';
import { jsonBytesOf } from './cells-json.ts';
import type { LiveNotebooks } from './live-notebooks.ts';
import type { NotebookSessions } from './notebook-sessions.ts';
import {
  type ExecutionRequest as ExecutionOrder,
  editsNotebook,
  executionOf,
  newCodes,
  refuseStructuralErrors,
  requestedCells,
} from './work/execution-request.ts';
import type { ErrorHint } from './work/run-recorder.ts';
import { runWork } from './work/run-work.ts';
import type { SessionWork } from './work/session-work.ts';
import { type StructuralErrors, structureWork, type UnfinishedCheck } from './work/structure-work.ts';

/**
 * How many milliseconds the kernel may take to check new code. It takes seconds for megabytes; but something that a cell has left
 * behind, such as a signal handler that does not return, can keep the kernel for ever.
 */
const CHECK_LIMIT_MS = 60_000;
const CHECK_INTERRUPTED =
  'The kernel has not checked the new code in time: something that a cell has left behind keeps it busy. Close the session to end that.';

/** Who submits a run: it counts among the runs in progress of this user. */
type Submitter = Pick<Principal, 'workspaceId' | 'userId'>;

/** What an execution needs from the request that submits it. */
export interface ExecutionContext {
  readonly trace?: TraceContext | undefined;
  /**
   * Aborts when the client leaves. Read it only when it is needed, because a request makes its signal when that is
   * read.
   */
  readonly signal?: AbortSignal;
  /** With a key the code is run once, even if the server dies: its kernel gets it only when the run is on disk. */
  readonly idempotencyKey?: string | undefined;
}

export interface ExecutionsOptions {
  readonly store: Store;
  readonly sessions: NotebookSessions;
  readonly work: SessionWork;
  readonly liveNotebooks: LiveNotebooks;
  readonly runs: RunRepository;
  /** Says in a run's error which limit of the kernel has ended it, or what the workspace lacks. */
  readonly hint: (workspaceId: WorkspaceId, ...error: Parameters<ErrorHint>) => string;
  readonly log: Pick<Log, 'error'>;
}

/** Executions: a request becomes a durable run of the session's kernel. */
export class Executions {
  readonly #options: ExecutionsOptions;

  constructor(options: ExecutionsOptions) {
    this.#options = options;
  }

  /**
   * Submits a run. Throws `not_found`, what the session's state refuses (`session_busy`, `session_not_ready`,
   * `session_not_editable`, …), `unknown_cell`, `duplicate_cell` or `structural_error`; nothing has changed then. The
   * kernel checks new code first; the session is busy meanwhile. The check is interrupted when the client leaves, and
   * after a minute.
   */
  async submit(
    caller: Submitter,
    sessionId: string,
    sent: ExecutionRequest,
    context: ExecutionContext = {},
  ): Promise<SubmittedRun> {
    const request = executionOf(sent);
    // The record of the run, the notebook, an event and the kernel all get the code.
    const codes = request.type === 'cells' ? request.cells.flatMap(({ code }) => code ?? []) : [];
    using _prepared = await prepareStrings(codes);
    using _memory = await this.#reserve({ workspaceId: caller.workspaceId, id: sessionId }, request, codes);
    return await this.#submit(caller, sessionId, request, context);
  }

  /** Reserves memory for the records of a run with long code, and of a large notebook that it changes. */
  #reserve(session: ActorId, request: ExecutionOrder, codes: readonly string[]): Promise<Disposable> {
    const codeBytes = codes.reduce((sum, code) => sum + (preparedJson.get(code)?.byteLength ?? 0), 0);
    const live = this.#options.liveNotebooks.peek(session);
    const changes = live !== undefined && editsNotebook(request);
    const cellBytes = changes ? jsonBytesOf(live.document.serialization.cells) : 0;
    return reserveMemory(codeBytes, cellBytes + codeBytes);
  }

  async #submit(
    caller: Submitter,
    sessionId: string,
    request: ExecutionOrder,
    context: ExecutionContext,
  ): Promise<SubmittedRun> {
    const { sessions, work, liveNotebooks, runs, store, hint, log } = this.#options;
    const { workspaceId, userId } = caller;
    const session = await sessions.whenReadable(workspaceId, sessionId, () =>
      sessions.ensureAwake(workspaceId, sessionId),
    );
    const edits = editsNotebook(request);
    const check = () => work.check(session, 'run', edits);
    check();
    const reserving = runs.admission.reserve(workspaceId, userId, check);
    using _permit = reserving instanceof Promise ? await reserving : reserving;
    if (reserving instanceof Promise) check();
    const live = liveNotebooks.of(session);
    let cellIds = requestedCells(request, live.view);
    const codes = newCodes(request, live.view);
    const skipsBroken = request.structuralErrors === 'skip';
    // With `skip` the kernel runs what can run, and says of the rest why it cannot.
    if (codes.size === 0 && !skipsBroken) {
      const errorsOf = (cellId: string) => live.view.get(cellId)?.structural ?? [];
      refuseStructuralErrors(live.view.ancestors(cellIds), errorsOf, labelsOf(live.view));
    } else if (!skipsBroken) {
      const { signal } = context;
      const found = await work.call<StructuralErrors | UnfinishedCheck>(
        session,
        { kind: 'check', edits, limitMs: CHECK_LIMIT_MS, ...(signal && { signal }) },
        (_, resolve) => structureWork({ codes: Object.fromEntries(codes), cellIds, resolve }),
      );
      if (found === 'interrupted') throw new AppError('session_busy', CHECK_INTERRUPTED);
      if (found !== 'lost')
        refuseStructuralErrors(found.keys(), (cellId) => found.get(cellId) ?? [], labelsOf(live.view));
      // Meanwhile the session may have lost its kernel or taken other work, it may have been closed and opened again, and its code
      // may have deleted cells. From here to the end nothing can come between.
      check();
      const hasChanged = found === 'lost' || liveNotebooks.of(session) !== live;
      if (hasChanged) return this.#submit(caller, sessionId, request, context);
      cellIds = requestedCells(request, live.view);
    }
    const { trace: parent } = context;
    runs.admission.admit(workspaceId, userId);
    const changes = request.type === 'cells' ? request.cells : [];
    if (edits) live.override(changes);
    const configured = changes.filter(({ config }) => config !== undefined).map(({ cellId }) => cellId);
    const environmentId = sessions.environmentOf(session);
    const runId = runs.begin(
      workspaceId,
      sessionId as SessionId,
      'notebook',
      request,
      environmentId,
      parent,
      userId,
    );
    const trace = parent && runs.reader.traceOf(workspaceId, runId);
    const cacheMode = request.cacheMode ?? 'default';
    const plan = runWork({
      runId,
      trace,
      cellIds,
      configured,
      cacheMode,
      skipsBroken,
      waitsForCommit: context.idempotencyKey !== undefined,
      live,
      runs,
      store,
      hint: (...error) => hint(workspaceId, ...error),
      log,
    });
    work.start(session, { kind: 'run', id: runId }, edits, plan);
    return { runId, sessionId, status: 'running' };
  }

  /** Asks for a run's cancellation: its kernel is interrupted at once. */
  cancel(workspaceId: WorkspaceId, sessionId: string, runId: RunId): void {
    this.#options.work.cancel({ workspaceId, id: sessionId }, runId);
  }
}
