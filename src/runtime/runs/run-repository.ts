/**
 * The records of runs of every kind. The run's actor decides its transitions; this module writes the effect of each
 * decision on the record, in the same turn of the event loop.
 */

import { type RunNotice, runMachine } from '#machines/run.ts';
import type { Failure } from '#src/base/errors/errors.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import { faultPoint } from '#src/base/fault-points.ts';
import type { AssetId, RunId, SessionId, WorkspaceId } from '#src/base/ids.ts';
import { newId, timeOfId } from '#src/base/ids.ts';
import { shownMetadata } from '#src/base/metadata-filter.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import { timestamp } from '#src/base/time/clock.ts';
import { happensWithin } from '#src/base/time/happens-within.ts';
import type { TraceContext } from '#src/base/tracing/trace-context.ts';
import type { Tracer } from '#src/base/tracing/tracer.ts';
import type { RunKind, TerminalStatus } from '#src/contract/wire/run.ts';
import { type Asset, putAsset } from '#storage/records/assets.ts';
import { type RunIndexEntry, type RunRecord, runRecords, runSummaries } from '#storage/records/runs.ts';
import { NO_LIMITS } from '#storage/records/workspace-limits.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { Permits } from '#storage/workspace-permits.ts';
import type { ActorKind } from '../actors/actor-kind.ts';
import type { ActorId } from '../actors/address.ts';
import type { ActorRuntime } from '../actors/runtime.ts';
import { PrintedTexts } from './printed-text.ts';
import { encodeRun, parse, type RunDocument, withEncodedInput } from './run-document.ts';
import { RunEnds } from './run-ends.ts';
import { RunLimits, type RunPermits } from './run-limits.ts';
import { addToIndex, noteEnd } from './run-lists.ts';
import { type RunFacts, RunReader } from './run-reader.ts';
import { contextOf, recordSpan, traceFrom } from './run-trace.ts';
import { RUN_VERSION, storedRun } from './stored-run.ts';
import type { Submission } from './submission.ts';

/** A run to begin. */
export interface NewRun {
  readonly workspaceId: WorkspaceId;
  readonly sessionId: SessionId;
  readonly kind: RunKind;
  readonly input: unknown;
  /** The environment of the session; null or absent when there is none. */
  readonly environmentId?: string | null;
  /** The trace of the request for the run. */
  readonly parent?: TraceContext | undefined;
  /** The user who submits the run. */
  readonly createdBy?: string | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** A run that was just begun. */
export interface BegunRun extends Pick<Submission, 'runId' | 'json'> {
  /** The trace of the run, for its effects; undefined when it belongs to no trace. */
  readonly trace: TraceContext | undefined;
}

/** How a run ended. */
export interface RunEnd {
  readonly status: TerminalStatus;
  readonly error: Failure | null;
  readonly output: unknown;
  readonly assets: ReadonlyMap<AssetId, Asset>;
}

/** The metrics of runs. */
export type RunMetrics = Pick<ServerMetrics, 'runs' | 'runDuration'>;

/** If facts are absent, the server has one process and deletes nothing. */
export interface RunRepositoryOptions extends Partial<RunFacts> {
  /** Limits of runs in progress; none when absent. */
  readonly limits?: RunPermits;
  readonly metrics?: RunMetrics;
  readonly tracer?: Tracer | undefined;
}

/** A run in progress, with its trace and its entry in the index. */
interface UnfinishedRun {
  readonly run: RunDocument;
  readonly trace: RunRecord['trace'] | undefined;
  /** Undefined for a run that an earlier server process has begun. */
  readonly entry: RunIndexEntry | undefined;
}

/** Called with a run that has ended. */
export type EndListener = (run: ActorId, end: RunNotice & { readonly status: TerminalStatus }) => void;

type EndedRun = RunDocument & { readonly status: TerminalStatus; readonly finishedAt: string };

const FREE: Permits = { hasRoom: () => true, take: () => ({ [Symbol.dispose]: () => undefined }) };
const UNLIMITED = { limitsOf: () => NO_LIMITS, ofWorkspaces: FREE, ofUsers: FREE };

/** Begins, ends and cancels runs. Owns their records. */
export class RunRepository {
  readonly #store: Store;
  /** The actors of runs. Their notices report when a run begins and ends. */
  readonly actors: ActorKind<typeof runMachine>;
  readonly limits: RunLimits;
  readonly reader: RunReader;
  /** The printed text of runs in progress. */
  readonly printed: PrintedTexts;
  /**
   * The runs that this process has begun and that have not ended. They are kept as stored, so that the end of a run need not read
   * its record.
   */
  readonly #begun = new Map<string, UnfinishedRun>();
  readonly #ends: RunEnds;
  readonly #onEnded: EndListener[] = [];
  readonly #metrics: RunMetrics;
  readonly #tracer: Tracer | undefined;

  constructor(
    store: Store,
    runtime: ActorRuntime,
    {
      limits = UNLIMITED,
      isDeleted = () => false,
      metrics = new ServerMetrics(),
      tracer,
      settled,
      ends = new RunEnds(store),
    }: RunRepositoryOptions = {},
  ) {
    this.#metrics = metrics;
    this.#tracer = tracer;
    this.#store = store;
    this.#ends = ends;
    this.actors = runtime.define({
      kind: 'run',
      machine: runMachine,
      machineVersion: RUN_VERSION,
      storedIn: storedRun,
      hasNewIds: true,
      homeOf: ({ sessionId }) => sessionId,
      restored: { type: 'restored' },
      shown: ({ kind, sessionId }) => ({
        links: [{ kind: kind === 'agent' ? 'agent-session' : 'notebook-session', id: sessionId }],
        context: { kind },
      }),
    });
    this.limits = new RunLimits(limits, () =>
      this.actors.residents().map(({ workspaceId, id }) => ({
        workspaceId,
        userId: this.#begun.get(id)?.run.createdBy,
      })),
    );
    this.printed = new PrintedTexts(store);
    this.reader = new RunReader(store, this, { settled, ends, isDeleted });
  }

  /** Calls `listener` in the turn in which a run ends, so that its writes and the end of the run are one commit. */
  onEnded(listener: EndListener): void {
    // One listener of the actors for all of them, because runs also begin.
    if (this.#onEnded.length === 0)
      this.actors.on((run, notice) => {
        if (notice.status === 'running') return;
        for (const told of this.#onEnded) told(run, { ...notice, status: notice.status });
      });
    this.#onEnded.push(listener);
  }

  /**
   * Begins a run that `limits` has admitted in this turn: writes its record, lists it in its session and starts its actor.
   * Returns the id of the run, its JSON in parts, and its trace.
   */
  begin({ workspaceId, sessionId, kind, input, environmentId = null, ...of }: NewRun): BegunRun {
    const { parent, createdBy, metadata } = of;
    const runId = newId<RunId>('run');
    const shown = shownMetadata(metadata);
    const now = timestamp(timeOfId(runId)); // the time of the id, so that the orders by id and by time are the same
    const by = createdBy === undefined ? {} : { createdBy };
    const run = withEncodedInput({
      id: runId,
      kind,
      sessionId,
      status: 'running',
      input,
      output: null,
      error: null,
      createdAt: now,
      startedAt: now,
      finishedAt: null,
      ...by,
      ...shown,
    });
    const trace = traceFrom(parent);
    const entry = {
      ...{ kind, sessionId, environmentId, status: 'running', createdAt: now },
      ...by,
      ...shown,
    } as const;
    this.#begun.set(runId, { run, trace, entry });
    this.actors.spawn({ workspaceId, id: runId }, { workspaceId, runId, sessionId, kind });
    const { record, parts } = encodeRun(run, { trace, owner: this.actors.owner });
    this.#store.write((tx) => {
      tx.putEncoded(record, workspaceId, runId);
      addToIndex(tx, workspaceId, runId, entry);
    });
    faultPoint('run.begun');
    return { runId, json: parts, trace: trace && contextOf(trace) };
  }

  /** Returns the user who submitted a run; undefined when the user is not known. */
  createdBy(workspaceId: WorkspaceId, runId: RunId): string | undefined {
    return this.#begun.get(runId)?.run.createdBy ?? this.reader.createdBy(workspaceId, runId);
  }

  /** Ends a run: its actor announces the status, and its record gets the output. A run that has ended is not changed. */
  finish(workspaceId: WorkspaceId, runId: RunId, end: RunEnd): void {
    const finish = { type: 'finish', status: end.status, error: end.error } as const;
    if (!this.actors.tell({ workspaceId, id: runId }, finish)) return;
    this.#store.write((tx) => this.printed.ended(tx, workspaceId, runId));
    const { sessionId } = this.#rewrite(workspaceId, runId, (run) => {
      const endedMs = this.#ends.next(run);
      this.#metrics.runDuration.of(run.kind).observe((endedMs - Date.parse(run.createdAt)) / 1000);
      return {
        ...run,
        status: end.status,
        output: end.output,
        error: end.error,
        finishedAt: timestamp(endedMs),
      };
    });
    faultPoint('run.ended');
    if (end.assets.size === 0) return;
    this.#store.write((tx) => {
      for (const [assetId, asset] of end.assets) putAsset(tx, asset, sessionId, workspaceId, runId, assetId);
    });
  }

  /**
   * Requests the cancellation of a run. Throws `not_found`, and `run_finished` when the run has ended. A run that was lost with
   * an earlier server process ends at once. For any other run, `stop` is called with its session.
   */
  cancel(workspaceId: WorkspaceId, runId: RunId, stop: (kind: RunKind, sessionId: SessionId) => void): void {
    this.reader.record(workspaceId, runId);
    const snapshot = this.actors.ask({ workspaceId, id: runId }, { type: 'cancel' });
    const { kind, sessionId } = snapshot.context;
    if (snapshot.status === 'active') {
      const run = { workspaceId, id: runId };
      // The end of the run will be committed soon. The writes of this request, such as its audit entry, join that commit.
      this.#store.commitWithNextTurn(() => this.actors.peek(run)?.snapshot.status === 'active');
      stop(kind, sessionId);
      return;
    }
    this.#rewrite(workspaceId, runId, (run) => ({
      ...run,
      status: 'cancelled',
      output: this.printed.outputOf(workspaceId, runId),
      finishedAt: timestamp(this.#ends.next(run)),
    }));
    this.#store.write((tx) => this.printed.erase(tx, workspaceId, runId));
  }

  /**
   * Resolves with true once the run has ended, or is stale, and with false when `ms` have passed or the signal aborts first.
   * Throws `not_found` at once.
   */
  ended(workspaceId: WorkspaceId, runId: string, ms: number, signal: AbortSignal): Promise<boolean> {
    const record = this.reader.record(workspaceId, runId);
    if (record.status !== 'running' || this.reader.isStale(workspaceId, runId)) return Promise.resolve(true);
    return happensWithin(ms, signal, (happened) =>
      this.actors.watch({ workspaceId, id: runId }, ({ status }) => {
        if (status !== 'running') happened();
      }),
    );
  }

  /** Stores a run that has ended, as `change` returns it. */
  #rewrite(workspaceId: WorkspaceId, runId: RunId, change: (run: RunDocument) => EndedRun): RunDocument {
    return this.#store.write((tx) => {
      const { run: before, trace, entry } = this.#unfinished(tx, workspaceId, runId);
      const run = change(before);
      this.#begun.delete(runId);
      this.#metrics.runs.of(run.kind, run.status).add();
      recordSpan(this.#tracer, trace, run);
      const changed = encodeRun(run, { trace });
      tx.putEncoded(changed.record, workspaceId, runId);
      if (changed.summary !== undefined) tx.put(runSummaries, changed.summary, workspaceId, runId);
      noteEnd(tx, workspaceId, runId, run, entry);
      return run;
    });
  }

  #unfinished(tx: Transaction, workspaceId: WorkspaceId, runId: RunId): UnfinishedRun {
    const begun = this.#begun.get(runId);
    if (begun !== undefined && this.#store.has(runRecords, workspaceId, runId)) return begun;
    const record = tx.get(runRecords, workspaceId, runId);
    invariant(record !== undefined, 'A run that ends has a record.', runId);
    const run = parse(record.document);
    invariant(run.status === 'running', 'A run ends once.', runId);
    return { run: withEncodedInput(run), trace: record.trace, entry: undefined };
  }
}
