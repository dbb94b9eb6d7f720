/**
 * The records of runs of every kind. The run's actor decides what may happen to a run; this module writes what the
 * decision means for its record, in the same turn of the event loop.
 */

import { type RunKind, type RunStatus, runMachine, type TerminalStatus } from '#machines/run.ts';
import type { ActorKind } from '#src/actors/actor-kind.ts';
import type { ActorRuntime } from '#src/actors/runtime.ts';
import { timestamp } from '#src/core/clock.ts';
import { AppError, type Failure, notFound } from '#src/core/errors.ts';
import { faultPoint } from '#src/core/fault-points.ts';
import type { AssetId, RunId, SessionId, WorkspaceId } from '#src/core/ids.ts';
import { newId } from '#src/core/ids.ts';
import { countOf, refuseOverQuota } from '#src/core/quota.ts';
import { type JsonPage, jsonPageOf } from '#storage/listing.ts';
import {
  type AssetRecord,
  agentRuns,
  assetRecords,
  type RunRecord,
  runRecords,
  sessionRuns,
} from '#storage/runs.ts';
import type { Store } from '#storage/store.ts';

/** A run as the API returns it. */
export interface RunDocument {
  readonly id: RunId;
  readonly kind: RunKind;
  readonly sessionId: SessionId;
  readonly status: RunStatus;
  readonly input: unknown;
  readonly output: unknown;
  readonly error: Failure | null;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
}

/** How a run ended. */
export interface RunEnd {
  readonly status: TerminalStatus;
  readonly error: Failure | null;
  readonly output: unknown;
  readonly assets: ReadonlyMap<AssetId, AssetRecord>;
}

/** Begins, ends, reads, lists and cancels runs. Owns their records. */
export class RunRepository {
  readonly #store: Store;
  /** The actors of runs. Their notices report when a run begins and ends. */
  readonly actors: ActorKind<typeof runMachine>;
  readonly #maxInFlight: number;

  /** A workspace may have at most `maxInFlight` runs in progress; 0 means no limit. */
  constructor(store: Store, runtime: ActorRuntime, maxInFlight = 0) {
    this.#store = store;
    this.actors = runtime.define({
      kind: 'run',
      machine: runMachine,
      machineVersion: 1,
      restored: { type: 'restored' },
    });
    this.#maxInFlight = maxInFlight;
  }

  /** Throws `quota_exceeded` when the workspace has its maximum of runs in progress. */
  admit(workspaceId: WorkspaceId): void {
    refuseOverQuota('runs in progress', this.#maxInFlight, () =>
      countOf(this.actors.residents(), workspaceId),
    );
  }

  /** Begins a run: writes its record, lists it in its session and starts its actor. Throws `quota_exceeded`. */
  begin(workspaceId: WorkspaceId, sessionId: SessionId, kind: RunKind, input: unknown): RunId {
    this.admit(workspaceId);
    const runId = newId<RunId>('run');
    const now = timestamp();
    const run: RunDocument = {
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
    };
    this.#store.write((tx) => {
      tx.put(runRecords, recordOf(run), workspaceId, runId);
      tx.put(listOf(kind), null, workspaceId, sessionId, runId);
    });
    this.actors.spawn({ workspaceId, id: runId }, { workspaceId, runId, sessionId, kind });
    faultPoint('run.begun');
    return runId;
  }

  /** Ends a run: its actor announces the status, and its record gets the output. A run that has ended stays as it is. */
  finish(workspaceId: WorkspaceId, runId: RunId, end: RunEnd): void {
    const finish = { type: 'finish', status: end.status, error: end.error } as const;
    if (!this.actors.tell({ workspaceId, id: runId }, finish)) return;
    this.#rewrite(workspaceId, runId, (run) => ({
      ...run,
      status: end.status,
      output: end.output,
      error: end.error,
      finishedAt: timestamp(),
    }));
    faultPoint('run.ended');
    if (end.assets.size === 0) return;
    this.#store.write((tx) => {
      for (const [assetId, asset] of end.assets) tx.put(assetRecords, asset, workspaceId, runId, assetId);
    });
  }

  /**
   * Requests the cancellation of a run. Throws `not_found`, and `run_finished` when it has ended. A run that was lost with
   * an earlier server process ends at once; for any other, `stop` is called with its session.
   */
  cancel(workspaceId: WorkspaceId, runId: RunId, stop: (kind: RunKind, sessionId: SessionId) => void): void {
    const snapshot = this.actors.ask({ workspaceId, id: runId }, { type: 'cancel' });
    const { kind, sessionId } = snapshot.context;
    if (snapshot.status === 'active') {
      stop(kind, sessionId);
      return;
    }
    this.#rewrite(workspaceId, runId, (run) => ({ ...run, status: 'cancelled', finishedAt: timestamp() }));
  }

  /** Returns the run as JSON, with `stale: true` when an earlier server process left it running. Throws `not_found`. */
  json(workspaceId: WorkspaceId, runId: string): Uint8Array {
    const record = this.#store.get(runRecords, workspaceId, runId);
    if (record === undefined) throw notFound();
    return this.#shown(workspaceId, runId, record);
  }

  /** Returns a page of the session's runs, oldest first. Executions and agent prompts are separate lists. */
  list(
    workspaceId: WorkspaceId,
    sessionId: string,
    after: string | undefined,
    limit: number,
    kind: RunKind = 'notebook',
  ): JsonPage {
    const runsOfKind = listOf(kind);
    if (after !== undefined && this.#store.get(runsOfKind, workspaceId, sessionId, after) === undefined) {
      throw new AppError('invalid_cursor', `The session ${sessionId} has no run ${after}.`);
    }
    const entries = this.#store.list(runsOfKind, workspaceId, [sessionId], { after, limit: limit + 1 });
    return jsonPageOf(entries, limit, (_, id) => {
      const record = this.#store.get(runRecords, workspaceId, id);
      if (record === undefined) throw new Error(`The run ${id} is listed but has no record.`);
      return this.#shown(workspaceId, id, record);
    });
  }

  /** Returns the conversation that an agent's run belongs to, `undefined` for other runs. Throws `not_found`. */
  conversationOf(workspaceId: WorkspaceId, runId: string): string | undefined {
    const record = this.#store.get(runRecords, workspaceId, runId);
    if (record === undefined) throw notFound();
    return record.kind === 'agent' ? record.sessionId : undefined;
  }

  /** Returns an asset of a run. Throws `not_found`. */
  asset(workspaceId: WorkspaceId, runId: string, assetId: string): AssetRecord {
    const asset = this.#store.get(assetRecords, workspaceId, runId, assetId);
    if (asset === undefined) throw notFound();
    return asset;
  }

  /** Returns the newest run of a session, for a subscriber that may have missed its end. */
  latest(workspaceId: WorkspaceId, sessionId: string, kind: RunKind = 'notebook'): RunDocument | undefined {
    for (const { id } of this.#store.list(listOf(kind), workspaceId, [sessionId], {
      limit: 1,
      reverse: true,
    })) {
      return parse(this.json(workspaceId, id));
    }
    return undefined;
  }

  #shown(workspaceId: WorkspaceId, runId: string, record: RunRecord): Uint8Array {
    if (record.status !== 'running') return record.document;
    const peek = this.actors.peek({ workspaceId, id: runId });
    if (peek?.live === true && peek.snapshot.hasTag('resident')) return record.document;
    return Buffer.from(JSON.stringify({ ...parse(record.document), stale: true }));
  }

  #rewrite(workspaceId: WorkspaceId, runId: RunId, change: (run: RunDocument) => RunDocument): void {
    this.#store.write((tx) => {
      const record = tx.get(runRecords, workspaceId, runId);
      if (record === undefined) throw new Error(`The run ${runId} has no record.`);
      tx.put(runRecords, recordOf(change(parse(record.document))), workspaceId, runId);
    });
  }
}

/** Returns the list for a kind of run. A notebook and the agent that is bound to it share an id, so each has a list. */
function listOf(kind: RunKind) {
  return kind === 'agent' ? agentRuns : sessionRuns;
}

function recordOf(run: RunDocument): RunRecord {
  const { sessionId, status, kind } = run;
  return { sessionId, status, kind, document: Buffer.from(JSON.stringify(run)) };
}

function parse(json: Uint8Array): RunDocument {
  return JSON.parse(
    Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8'),
  ) as RunDocument;
}
