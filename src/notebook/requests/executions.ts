import { inSlices, MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import type { RunId, SessionId, WorkspaceId } from '#src/base/ids.ts';
import { isShortJson, prepareObject } from '#src/base/json/json-write.ts';
import { prepareStrings } from '#src/base/json/prepared-strings.ts';
import type { TraceContext } from '#src/base/tracing/trace-context.ts';
import type { Cell } from '#src/contract/wire/notebook.ts';
import type { ExecutionRequest } from '#src/contract/wire/run.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { Submission } from '#src/runtime/runs/submission.ts';
import { reserveMemory } from '#storage/record-memory.ts';
import type { Permit } from '#storage/workspace-permits.ts';
import { labelsOf } from '../open/cell-label.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import { preparingCells } from '../saved/cells-json.ts';
import { withConfig } from '../saved/document.ts';
import {
  type RequestedExecution as ExecutionOrder,
  executionOf,
  newCodes,
  type RequestedCell,
  refuseStale,
  refuseStructuralErrors,
  requestedCells,
} from '../work/execution-request.ts';
import type { ErrorHint } from '../work/run-recorder.ts';
import { runWork } from '../work/run-work.ts';
import { deadlineOf } from '../work/session-work.ts';
import { type StructuralErrors, structureWork, type UnfinishedCheck } from '../work/structure-work.ts';
import { sizeWith } from './code-memory.ts';
import type { NotebookRequestContext } from './request-context.ts';

/**
 * How many milliseconds the kernel may take to check new code. A check of megabytes takes seconds; but code of an earlier cell,
 * such as a signal handler that does not return, can block the kernel for ever.
 */
const CHECK_LIMIT_MS = 60_000;
const CHECK_INTERRUPTED =
  'The check of the new code was interrupted: by a request, or because it took more than a minute. If something that a cell has ' +
  'left behind keeps the kernel busy, close the session to end that.';

/** The submitter of a run: the run counts among this user's runs in progress. */
type Submitter = Pick<Principal, 'workspaceId' | 'userId'>;

/** The parts of the submitting request that an execution needs. */
export interface ExecutionContext {
  readonly trace?: TraceContext | undefined;
  /**
   * Aborts when the client leaves. Read this member only when the signal is needed, because a request makes its signal at the
   * first read.
   */
  readonly signal?: AbortSignal;
  /** With a key the code runs once, even if the server dies: the kernel gets the code only when the run is on disk. */
  readonly idempotencyKey?: string | undefined;
  /**
   * Whether the run carries out the codes of its request and leaves the notebook as it is: the cells were edited while the run
   * waited. The kernel gets the present codes afterwards, without a run.
   */
  readonly leavesNotebook?: boolean;
}

/** A request for a run. */
interface Order {
  readonly caller: Submitter;
  readonly sessionId: string;
  readonly request: ExecutionOrder;
  /** Whether the request changes the notebook. */
  readonly edits: boolean;
  readonly context: ExecutionContext;
  /** Whether the order has a permit for the run. */
  readonly isAdmitted: boolean;
}

/** The session that takes a run, and the cells that it runs. */
interface Target {
  readonly session: ActorId;
  readonly live: LiveNotebook;
  readonly environmentId: string | null;
  readonly cellIds: readonly string[];
}

/**
 * Returns the limit of the kernel that has ended a run, or the packages that the workspace lacks, for the run's
 * error.
 */
type HintOf = (workspaceId: WorkspaceId, ...error: Parameters<ErrorHint>) => ReturnType<ErrorHint>;

/** Executions: a request becomes a durable run of the session's kernel. */
export class Executions {
  readonly #context: NotebookRequestContext;
  readonly #hint: HintOf;

  constructor(context: NotebookRequestContext, hint: HintOf) {
    this.#context = context;
    this.#hint = hint;
  }

  /**
   * Submits a run: at once, or in a promise when the kernel first checks new code, during which the session is busy, or when other
   * workers have to be asked for a permit. The check is interrupted when the client leaves, and after a minute. Throws or rejects
   * with `not_found`, a refusal of the session's state (`session_busy`, `session_not_ready`, `session_not_editable`, …),
   * `unknown_cell`, `duplicate_cell`, `stale_update`, `structural_error` or `quota_exceeded`; nothing has changed then.
   */
  submit(
    caller: Submitter,
    sessionId: string,
    sent: ExecutionRequest,
    context: ExecutionContext = {},
  ): Submission | Promise<Submission> {
    const { request, edits } = executionOf(sent);
    const order = { caller, sessionId, request, edits, context, isAdmitted: false };
    return edits ? this.#prepareAndBegin(order) : this.#begin(order);
  }

  /** Submits a run that changes the notebook. The code goes into the record of the run, the notebook, an event and the kernel. */
  async #prepareAndBegin(order: Order): Promise<Submission> {
    const { caller, sessionId, request } = order;
    const { workspaceId } = caller;
    const cells = request.type === 'cells' ? request.cells : [];
    const codes = cells.flatMap(({ code }) => code ?? []);
    using _prepared = await prepareStrings(codes, workspaceId);
    const open = this.#context.liveNotebooks.peek({ workspaceId, id: sessionId });
    using _cells = await this.#prepareCells(workspaceId, open, cells);
    const { codeBytes, cellBytes } = sizeWith(open, cells);
    using _memory = await reserveMemory(codeBytes, codeBytes, cellBytes); // the record and the answer of the run, and the notebook
    return await this.#context.sessions.whenReadable(workspaceId, sessionId, () => this.#begin(order));
  }

  /** Makes the JSON of many cells that a request brings, for its run and for the notebook. */
  #prepareCells(
    workspaceId: WorkspaceId,
    open: LiveNotebook | undefined,
    cells: readonly RequestedCell[],
  ): Disposable | undefined | Promise<Disposable> {
    if (isShortJson(cells, MAX_SIZE_AT_ONCE)) return undefined;
    return inSlices(
      (function* () {
        yield* prepareObject(cells);
        return yield* preparingCells(open === undefined ? [] : savedCells(cells, open));
      })(),
      workspaceId,
    );
  }

  /** Begins the run, or has new code checked before that. */
  #begin(order: Order): Submission | Promise<Submission> {
    const { caller, sessionId, request, edits } = order;
    const { sessions, work, liveNotebooks } = this.#context;
    const { session, live: known, environmentId } = sessions.use(caller.workspaceId, sessionId);
    work.check(session, 'run', edits);
    const live = known ?? liveNotebooks.of(session);
    const { view } = live;
    refuseStale(request, live);
    const cellIds = requestedCells(request, view);
    // With `skip` the kernel runs the cells that can run, and reports for each other cell why it cannot.
    if (request.structuralErrors !== 'skip') {
      const codes = edits ? newCodes(request, view) : undefined;
      if (codes !== undefined && codes.size > 0)
        return this.#checkAndBegin(order, { session, live, environmentId, cellIds }, codes);
      if (view.hasStructuralErrors) {
        const errorsOf = (cellId: string) => view.get(cellId)?.structural ?? [];
        refuseStructuralErrors(view.ancestors(cellIds), errorsOf, labelsOf(view));
      }
    }
    return this.#start(order, { session, live, environmentId, cellIds });
  }

  async #checkAndBegin(
    order: Order,
    target: Target,
    codes: ReadonlyMap<string, string>,
  ): Promise<Submission> {
    const { caller, sessionId, request, edits, context } = order;
    const { sessions, work, liveNotebooks } = this.#context;
    const { session, live, cellIds } = target;
    const { signal } = context;
    const found = await work.call<StructuralErrors | UnfinishedCheck>(
      session,
      { kind: 'check', by: caller.userId, edits, timeoutMs: CHECK_LIMIT_MS, ...(signal && { signal }) },
      (_, resolve) => structureWork(Object.fromEntries(codes), cellIds, resolve),
    );
    if (found === 'interrupted') throw new AppError('session_busy', CHECK_INTERRUPTED);
    if (found !== 'lost')
      refuseStructuralErrors(
        live.view.inOrder(found),
        (cellId) => found.get(cellId) ?? [],
        labelsOf(live.view),
      );
    // During the check the session may have lost its kernel, taken other work, or been closed and opened again, and its code may
    // have deleted cells. From here to the end nothing can change any more.
    work.check(session, 'run', edits);
    if (found === 'lost' || liveNotebooks.of(session) !== live)
      return await sessions.whenReadable(caller.workspaceId, sessionId, () => this.#begin(order));
    refuseStale(request, live); // another request may have changed the notebook in the meantime
    return this.#start(order, { ...target, cellIds: requestedCells(request, live.view) });
  }

  /** Begins the order again with the permit, because the session may have changed while other workers were asked for the permit. */
  async #beginWith(permit: Promise<Permit>, order: Order): Promise<Submission> {
    using _permit = await permit;
    return await this.#begin({ ...order, isAdmitted: true });
  }

  /**
   * Changes the notebook, begins the run and gives the run to the session, unless a permit has to be waited for. The session takes
   * the run, because its state was just checked.
   */
  #start(order: Order, { session, live, environmentId, cellIds }: Target): Submission | Promise<Submission> {
    const { caller, sessionId, request, edits, context, isAdmitted } = order;
    const { work, runs } = this.#context;
    const { workspaceId, userId } = caller;
    const permit = isAdmitted ? undefined : runs.limits.admit(workspaceId, userId);
    if (permit !== undefined) return this.#beginWith(permit, order);
    const { metadata, ...input } = request;
    const changes = edits && request.type === 'cells' ? request.cells : [];
    const isDetached = context.leavesNotebook === true;
    if (edits && !isDetached) live.override(changes, userId);
    const { lastEventId } = live.stream;
    const { runId, json, trace } = runs.begin({
      workspaceId,
      sessionId: sessionId as SessionId,
      kind: 'notebook',
      input,
      environmentId,
      parent: context.trace,
      createdBy: userId,
      metadata,
    });
    const plan = runWork(this.#context, {
      run: { runId, trace },
      cellIds,
      ownCodes: isDetached ? codesIn(changes) : undefined,
      configured: changes.flatMap(({ cellId, config }) => (config === undefined ? [] : cellId)),
      cacheMode: request.cacheMode ?? 'default',
      skipsBroken: request.structuralErrors === 'skip',
      waitsForCommit: context.idempotencyKey !== undefined,
      live,
      hint: (...error) => this.#hint(workspaceId, ...error),
    });
    const ordered = { kind: 'run', id: runId, by: userId, ...deadlineOf(request) } as const;
    work.start(session, { live, work: ordered, edits, plan });
    return { runId, lastEventId, json };
  }

  /** Asks for a run's cancellation: its kernel is interrupted at once. */
  cancel(workspaceId: WorkspaceId, sessionId: string, runId: RunId): void {
    this.#context.work.cancel({ workspaceId, id: sessionId }, runId);
  }
}

/** Returns the cells of a request as the notebook will have them, if nothing else changes the notebook meanwhile. */
function savedCells(cells: readonly RequestedCell[], { view }: LiveNotebook): Cell[] {
  return cells.flatMap(({ cellId, code, config }) => {
    const cell = view.get(cellId);
    if (cell === undefined) return [];
    const options = config === undefined ? cell.options : withConfig(cell.options, config);
    return [{ cell_id: cellId, code: code ?? cell.code, options }];
  });
}

/** Returns the codes that a request brings, by the ids of their cells. */
function codesIn(cells: readonly RequestedCell[]): ReadonlyMap<string, string> {
  return new Map(cells.flatMap(({ cellId, code }) => (code === undefined ? [] : [[cellId, code] as const])));
}
