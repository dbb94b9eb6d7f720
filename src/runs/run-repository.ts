/**
 * The records of runs of every kind. The run's actor decides what may happen to a run; this module writes what the
 * decision means for its record, in the same turn of the event loop.
 */

import { type RunKind, runMachine, type TerminalStatus } from '#machines/run.ts';
import type { ActorKind } from '#src/actors/actor-kind.ts';
import type { ActorRuntime } from '#src/actors/runtime.ts';
import { timestamp } from '#src/core/clock.ts';
import { type Failure, notFound } from '#src/core/errors.ts';
import { faultPoint } from '#src/core/fault-points.ts';
import { happensWithin } from '#src/core/happens-within.ts';
import type { AssetId, RunId, SessionId, WorkspaceId } from '#src/core/ids.ts';
import { newId, timeOfId } from '#src/core/ids.ts';
import { ServerMetrics } from '#src/metrics/server-metrics.ts';
import type { TraceContext } from '#src/tracing/trace-context.ts';
import type { Tracer } from '#src/tracing/tracer.ts';
import { type Asset, putAsset, readAsset } from '#storage/assets.ts';
import { type RunIndexEntry, type RunRecord, runIndex, runRecords, runSummaries } from '#storage/runs.ts';
import { type JsonPage, slicedJsonPage } from '#storage/sliced-listing.ts';
import type { Store } from '#storage/store.ts';
import { RunAdmission, type RunAdmissionOptions } from './run-admission.ts';
import {
  asStale,
  encodeRun,
  endOf,
  parse,
  parseEssentials,
  type RunDocument,
  withEncodedInput,
  withoutOutput,
} from './run-document.ts';
import { addToIndex, listOf, noteStatus, type RunQuery, runFinder } from './run-lists.ts';
import { contextOf, recordSpan, traceFrom } from './run-trace.ts';
import type { SettledRuns } from './settled-runs.ts';
import { RUN_VERSION, storedRun } from './stored-run.ts';

/** How a run ended. */
export interface RunEnd {
  readonly status: TerminalStatus;
  readonly error: Failure | null;
  readonly output: unknown;
  readonly assets: ReadonlyMap<AssetId, Asset>;
}

/** What is counted of runs. */
export type RunMetrics = Pick<ServerMetrics, 'runs' | 'runDuration'>;

export interface RunRepositoryOptions {
  /** How many runs of a workspace may be in progress; 0 means no limit. */
  readonly maxInFlight?: number;
  /** Permits for runs in progress, in a server of several workers with that limit. */
  readonly permits?: RunAdmissionOptions['permits'];
  readonly metrics?: RunMetrics;
  readonly tracer?: Tracer | undefined;
  /** Absent in a server of one process. */
  readonly settled?: Pick<SettledRuns, 'horizon'> | undefined;
  /** Whether what this session belonged to was deleted; its runs are then found no more, though they may be there still. */
  readonly isDeleted?: (workspaceId: WorkspaceId, sessionId: string) => boolean;
}

const ANYBODY = (_run: RunIndexEntry): boolean => true;

/** Begins, ends, reads, lists and cancels runs. Owns their records. */
export class RunRepository {
  readonly #store: Store;
  /** The actors of runs. Their notices report when a run begins and ends. */
  readonly actors: ActorKind<typeof runMachine>;
  readonly admission: RunAdmission;
  /** Runs in progress with a long input, as they were stored, so that nothing parses them at their end. */
  readonly #large = new Map<RunId, RunDocument>();
  readonly #metrics: RunMetrics;
  readonly #tracer: Tracer | undefined;
  readonly #settled: Pick<SettledRuns, 'horizon'> | undefined;
  readonly #isDeleted: (workspaceId: WorkspaceId, sessionId: string) => boolean;

  constructor(
    store: Store,
    runtime: ActorRuntime,
    {
      maxInFlight = 0,
      permits,
      isDeleted = () => false,
      metrics = new ServerMetrics(),
      tracer,
      settled,
    }: RunRepositoryOptions = {},
  ) {
    this.#metrics = metrics;
    this.#tracer = tracer;
    this.#settled = settled;
    this.#store = store;
    this.actors = runtime.define({
      kind: 'run',
      machine: runMachine,
      machineVersion: RUN_VERSION,
      storedIn: storedRun,
      homeOf: ({ sessionId }) => sessionId,
      restored: { type: 'restored' },
      shown: ({ kind, sessionId }) => ({
        links: [{ kind: kind === 'agent' ? 'agent-session' : 'notebook-session', id: sessionId }],
        context: { kind },
      }),
    });
    this.admission = new RunAdmission({
      limit: maxInFlight,
      permits,
      inProgress: () => this.actors.residents(),
    });
    this.#isDeleted = isDeleted;
  }

  /** Begins a run: writes its record, lists it in its session and starts its actor. Throws `quota_exceeded`. */
  begin(
    workspaceId: WorkspaceId,
    sessionId: SessionId,
    kind: RunKind,
    input: unknown,
    environmentId: string | null = null,
    parent?: TraceContext,
  ): RunId {
    this.admission.admit(workspaceId);
    const runId = newId<RunId>('run');
    const now = timestamp(timeOfId(runId)); // so that the order of ids is the order of times
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
    });
    if (run.input !== input) this.#large.set(runId, run);
    this.actors.spawn({ workspaceId, id: runId }, { workspaceId, runId, sessionId, kind });
    this.#store.write((tx) => {
      const { record } = encodeRun(run, { trace: traceFrom(parent), owner: this.actors.owner });
      tx.putEncoded(record, workspaceId, runId);
      const entry = { kind, sessionId, environmentId, status: 'running', createdAt: now } as const;
      addToIndex(tx, workspaceId, runId, entry);
    });
    faultPoint('run.begun');
    return runId;
  }

  /** Ends a run: its actor announces the status, and its record gets the output. A run that has ended stays as it is. */
  finish(workspaceId: WorkspaceId, runId: RunId, end: RunEnd): void {
    const finish = { type: 'finish', status: end.status, error: end.error } as const;
    if (!this.actors.tell({ workspaceId, id: runId }, finish)) return;
    const { sessionId } = this.#rewrite(workspaceId, runId, (run) => {
      const endedMs = endOf(run);
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
   * Requests the cancellation of a run. Throws `not_found`, and `run_finished` when it has ended. A run that was lost with
   * an earlier server process ends at once; for any other, `stop` is called with its session.
   */
  cancel(workspaceId: WorkspaceId, runId: RunId, stop: (kind: RunKind, sessionId: SessionId) => void): void {
    this.#record(workspaceId, runId);
    const snapshot = this.actors.ask({ workspaceId, id: runId }, { type: 'cancel' });
    const { kind, sessionId } = snapshot.context;
    if (snapshot.status === 'active') {
      stop(kind, sessionId);
      return;
    }
    this.#rewrite(workspaceId, runId, (run) => ({
      ...run,
      status: 'cancelled',
      finishedAt: timestamp(endOf(run)),
    }));
  }

  /**
   * Resolves with true once the run has ended, or is stale, and with false when `ms` have passed or the signal aborts first.
   * Throws `not_found` at once.
   */
  ended(workspaceId: WorkspaceId, runId: string, ms: number, signal: AbortSignal): Promise<boolean> {
    const record = this.#record(workspaceId, runId);
    if (record.status !== 'running' || this.#isStale(workspaceId, runId)) return Promise.resolve(true);
    return happensWithin(ms, signal, (happened) =>
      this.actors.watch({ workspaceId, id: runId }, ({ status }) => {
        if (status !== 'running') happened();
      }),
    );
  }

  /** Returns the run as JSON, with `stale: true` when an earlier server process left it running. Throws `not_found`. */
  json(workspaceId: WorkspaceId, runId: string): Uint8Array {
    return this.served(workspaceId, runId).json;
  }

  /** Returns what `json` returns, and its version: a run has one JSON as it runs, one if it is stale, and one at its end. */
  served(workspaceId: WorkspaceId, runId: string): { readonly json: Uint8Array; readonly version: string } {
    const record = this.#record(workspaceId, runId);
    const json = this.#shown(workspaceId, runId, record);
    if (json !== record.document) return { json, version: 'stale' };
    return { json, version: record.isTrimmed === true ? `${record.status}-trimmed` : record.status };
  }

  /**
   * Resolves with a page of the runs that the query describes and the caller may read. Only runs that are shown are read. With
   * several workers, a page that begins with the oldest ends before runs that others may still commit smaller ids than.
   * Rejects with `invalid_cursor`.
   */
  async list(workspaceId: WorkspaceId, query: RunQuery, mayRead = ANYBODY): Promise<JsonPage> {
    // One worker makes the runs of a session. A list that begins with the newest tells of no run that is committed later.
    const isInOrder = query.sessionId !== undefined || query.order === 'desc';
    const horizon =
      this.#settled === undefined || isInOrder ? undefined : await this.#settled.horizon(workspaceId);
    return slicedJsonPage(this.#store, {
      page: query,
      entriesAfter: runFinder(this.#store, workspaceId, query, horizon),
      itemOf: (entry, id) => {
        if (entry === undefined || this.#isDeleted(workspaceId, entry.sessionId)) return undefined;
        if (!mayRead(entry)) return undefined;
        const summary = query.include === 'none' ? this.#store.get(runSummaries, workspaceId, id) : undefined;
        if (summary !== undefined) return summary;
        const record = this.#store.get(runRecords, workspaceId, id);
        if (record === undefined) return undefined;
        const shown = query.include === 'none' ? { ...record, document: withoutOutput(record) } : record;
        return this.#shown(workspaceId, id, shown);
      },
    });
  }

  /** Returns the trace context of a run, for what it causes; undefined when it belongs to no trace. */
  traceOf(workspaceId: WorkspaceId, runId: string): TraceContext | undefined {
    return contextOf(this.#store.get(runRecords, workspaceId, runId)?.trace);
  }

  exists(workspaceId: WorkspaceId, runId: string): boolean {
    return this.#find(workspaceId, runId) !== undefined;
  }

  /** Returns the notebook or conversation that a run belongs to, in whose home it is carried out; undefined for no run. */
  homeOf(workspaceId: WorkspaceId, runId: string): string | undefined {
    return this.#store.get(runIndex, workspaceId, runId)?.sessionId;
  }

  /** Returns the conversation that an agent's run belongs to, `undefined` for other runs. Throws `not_found`. */
  conversationOf(workspaceId: WorkspaceId, runId: string): string | undefined {
    const record = this.#record(workspaceId, runId);
    return record.kind === 'agent' ? record.sessionId : undefined;
  }

  /** Returns an asset of a run. Throws `not_found`. */
  asset(workspaceId: WorkspaceId, runId: string, assetId: string): Asset {
    const asset = readAsset(this.#store, workspaceId, runId, assetId);
    if (asset === undefined) throw notFound();
    return asset;
  }

  /** Returns whether a run has not ended; one that an earlier server process left behind has. */
  isInProgress(workspaceId: WorkspaceId, runId: string): boolean {
    const record = this.#store.get(runRecords, workspaceId, runId);
    return record?.status === 'running' && !this.#isStale(workspaceId, runId);
  }

  /** Returns the newest run of a session, for a subscriber that may have missed its end. Large inputs are left out. */
  latest(workspaceId: WorkspaceId, sessionId: string, kind: RunKind = 'notebook'): RunDocument | undefined {
    const newestFirst = { limit: Number.POSITIVE_INFINITY, reverse: true };
    for (const { id } of this.#store.list(listOf(kind), workspaceId, [sessionId], newestFirst)) {
      const record = this.#store.get(runRecords, workspaceId, id);
      if (record === undefined) continue;
      const run = parseEssentials(record);
      return this.#isLeftBehind(workspaceId, id, record) ? { ...run, stale: true } : run;
    }
    return undefined;
  }

  #find(workspaceId: WorkspaceId, runId: string): RunRecord | undefined {
    const record = this.#store.get(runRecords, workspaceId, runId);
    return record === undefined || this.#isDeleted(workspaceId, record.sessionId) ? undefined : record;
  }

  #record(workspaceId: WorkspaceId, runId: string): RunRecord {
    const record = this.#find(workspaceId, runId);
    if (record === undefined) throw notFound();
    return record;
  }

  #shown(workspaceId: WorkspaceId, runId: string, record: RunRecord): Uint8Array {
    return this.#isLeftBehind(workspaceId, runId, record) ? asStale(record.document) : record.document;
  }

  #isLeftBehind(workspaceId: WorkspaceId, runId: string, { status }: RunRecord): boolean {
    return status === 'running' && this.#isStale(workspaceId, runId);
  }

  /** Returns whether a run that reads as running was left behind by an earlier server process. */
  #isStale(workspaceId: WorkspaceId, runId: string): boolean {
    const peek = this.actors.peek({ workspaceId, id: runId });
    return peek === undefined || peek.isLost || !peek.snapshot.hasTag('resident');
  }

  #rewrite(workspaceId: WorkspaceId, runId: RunId, change: (run: RunDocument) => RunDocument): RunDocument {
    return this.#store.write((tx) => {
      const record = tx.get(runRecords, workspaceId, runId);
      if (record === undefined) throw new Error(`The run ${runId} has no record.`);
      const run = change(this.#large.get(runId) ?? withEncodedInput(parse(record.document)));
      if (run.status !== 'running') this.#large.delete(runId);
      if (run.status !== 'running') this.#metrics.runs.of(run.kind, run.status).add();
      if (run.status !== 'running') recordSpan(this.#tracer, record.trace, run);
      const changed = encodeRun(run, { trace: record.trace });
      tx.putEncoded(changed.record, workspaceId, runId);
      if (changed.summary !== undefined) tx.put(runSummaries, changed.summary, workspaceId, runId);
      noteStatus(tx, workspaceId, runId, run.status);
      return run;
    });
  }
}
