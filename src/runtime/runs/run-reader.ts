/** Reads runs: their records as they are served, in pages and one by one, and facts about a run for other modules. */
import type { runMachine } from '#machines/run.ts';
import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import { notFound } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { RunKind, RunStatus } from '#src/contract/wire/run.ts';
import { DAMAGED, readOrDamaged, unlessDamaged } from '#storage/damaged.ts';
import { type JsonPage, slicedJsonPage } from '#storage/lists/sliced-listing.ts';
import { type Asset, readAsset } from '#storage/records/assets.ts';
import {
  type RunIndexEntry,
  type RunRecord,
  runIndex,
  runRecords,
  runSummaries,
} from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';
import type { ActorKind } from '../actors/actor-kind.ts';
import type { PrintedTexts } from './printed-text.ts';
import {
  asOmitted,
  asStale,
  parseEssentials,
  type RunDocument,
  withOutput,
  withoutOutput,
} from './run-document.ts';
import type { RunEnds } from './run-ends.ts';
import { type FoundRun, isByEnd, listOf, type RunQuery, runFinder } from './run-lists.ts';
import type { SettledRuns } from './settled-runs.ts';

/** Facts about the runs of all processes: which runs are committed, have ended or were deleted. */
export interface RunFacts {
  /** Undefined in a server of one process. */
  readonly settled: Pick<SettledRuns, 'horizon'> | undefined;
  readonly ends: RunEnds;
  /**
   * Returns whether the notebook or conversation of this session was deleted. Its runs are then not found, even if they still
   * exist.
   */
  readonly isDeleted: (workspaceId: WorkspaceId, sessionId: string) => boolean;
}

/** The part of `RunRepository` that reading needs. */
interface RunsRead {
  readonly actors: Pick<ActorKind<typeof runMachine>, 'peek'>;
  readonly printed: Pick<PrintedTexts, 'outputOf'>;
}

/** The most pages of runs that are made at once. A page may have some MiB, and one thread makes all pages. */
const PAGES = { width: 12, widthOfKey: 4, queueOfKey: 256, alwaysOne: true };

const ANYBODY = (_run: RunIndexEntry): boolean => true;

export class RunReader {
  readonly #store: Store;
  readonly #pages = new FairSemaphore(PAGES);
  readonly #actors: RunsRead['actors'];
  readonly #printed: RunsRead['printed'];
  readonly #settled: RunFacts['settled'];
  readonly #ends: RunEnds;
  readonly #isDeleted: RunFacts['isDeleted'];

  constructor(store: Store, { actors, printed }: RunsRead, { settled, ends, isDeleted }: RunFacts) {
    this.#store = store;
    this.#actors = actors;
    this.#printed = printed;
    this.#settled = settled;
    this.#ends = ends;
    this.#isDeleted = isDeleted;
  }

  /** Returns the run as JSON, with `stale: true` when an earlier server process left it running. Throws `not_found`. */
  json(workspaceId: WorkspaceId, runId: string): Uint8Array {
    return this.served(workspaceId, runId).json;
  }

  /**
   * Returns the JSON like `json`, with its version. A run has one version while it runs, another when it is stale, and another at
   * its end.
   */
  served(workspaceId: WorkspaceId, runId: string): { readonly json: Uint8Array; readonly version: string } {
    const record = this.record(workspaceId, runId);
    const json = this.#shown(workspaceId, runId, record);
    if (json !== record.document) return { json, version: 'stale' };
    return { json, version: record.isTrimmed === true ? `${record.status}-trimmed` : record.status };
  }

  /**
   * Resolves with a page of the runs that match the query and that the caller may read. Only records of shown runs are read. In a
   * list with the oldest run first, a page ends before any place at which a run may still be committed. Rejects with
   * `invalid_cursor`.
   */
  async list(workspaceId: WorkspaceId, query: RunQuery, mayRead = ANYBODY): Promise<JsonPage> {
    const horizon = await this.#horizonOf(workspaceId, query);
    return this.#pages.pass(workspaceId, () =>
      slicedJsonPage(this.#store, {
        page: query,
        workspaceId,
        entriesAfter: runFinder(this.#store, workspaceId, query, horizon),
        itemOf: (found) =>
          found === undefined ? undefined : this.#itemOf(workspaceId, query, found, mayRead),
      }),
    );
  }

  /** Returns a run as an item of a list; undefined when the list does not show it. */
  #itemOf(
    workspaceId: WorkspaceId,
    { include }: RunQuery,
    { runId: id, entry }: FoundRun,
    mayRead: typeof ANYBODY,
  ): Uint8Array | undefined {
    if (this.#isDeleted(workspaceId, entry.sessionId) || !mayRead(entry)) return undefined;
    const summary = include === 'none' ? this.#store.get(runSummaries, workspaceId, id) : undefined;
    if (summary !== undefined) return asOmitted(summary);
    const record = this.#store.get(runRecords, workspaceId, id);
    if (record === undefined) return undefined;
    if (include !== 'none') return this.#shown(workspaceId, id, record);
    const shown = withoutOutput(record);
    return this.#isLeftBehind(workspaceId, id, record) ? asStale(shown) : shown;
  }

  /**
   * Resolves with the cursor before which a page must end, so that a reader who continues after its last run misses no run.
   * Undefined for a list with the newest run first, which need not show later commits, and for the runs of a session, which one
   * worker makes.
   */
  async #horizonOf(workspaceId: WorkspaceId, query: RunQuery): Promise<string | undefined> {
    if (query.order === 'desc') return undefined;
    if (isByEnd(query)) return this.#ends.horizon(workspaceId);
    return query.sessionId === undefined ? this.#settled?.horizon(workspaceId) : undefined;
  }

  /** Returns the user who submitted a run, according to its record; undefined when the user is not known. */
  createdBy(workspaceId: WorkspaceId, runId: string): string | undefined {
    const record = unlessDamaged(() => this.#store.get(runRecords, workspaceId, runId));
    return record && parseEssentials(record).createdBy;
  }

  exists(workspaceId: WorkspaceId, runId: string): boolean {
    return this.#find(workspaceId, runId) !== undefined;
  }

  /**
   * Returns the notebook or conversation of a run; undefined for an unknown run. The home of that object carries the run out.
   */
  homeOf(workspaceId: WorkspaceId, runId: string): string | undefined {
    return this.#store.get(runIndex, workspaceId, runId)?.sessionId;
  }

  /** Returns the conversation of an agent's run; undefined for other runs. Throws `not_found`. */
  conversationOf(workspaceId: WorkspaceId, runId: string): string | undefined {
    const record = this.record(workspaceId, runId);
    return record.kind === 'agent' ? record.sessionId : undefined;
  }

  /** Returns an asset of a run. Throws `not_found`. */
  asset(workspaceId: WorkspaceId, runId: string, assetId: string): Asset {
    const asset = readAsset(this.#store, workspaceId, runId, assetId);
    if (asset === undefined) throw notFound();
    return asset;
  }

  /**
   * Returns whether a run is in progress. That is false for a run that an earlier server process left behind, and for a run whose
   * actor is damaged. If the record of a run is damaged, the index says whether the run has ended.
   */
  isInProgress(workspaceId: WorkspaceId, runId: string): boolean {
    const record = readOrDamaged(() => this.#store.get(runRecords, workspaceId, runId));
    const known =
      record === DAMAGED ? unlessDamaged(() => this.#store.get(runIndex, workspaceId, runId)) : record;
    if (known?.status !== 'running') return false;
    return unlessDamaged(() => this.isStale(workspaceId, runId)) === false;
  }

  /**
   * Returns the newest run of a session, for a subscriber that may have missed the end of that run. Large inputs are left out.
   * Runs with a damaged record are skipped.
   */
  latest(workspaceId: WorkspaceId, sessionId: string, kind: RunKind = 'notebook'): RunDocument | undefined {
    const newestFirst = { limit: Number.POSITIVE_INFINITY, reverse: true };
    for (const { id } of this.#store.list(listOf(kind), workspaceId, [sessionId], newestFirst)) {
      const record = unlessDamaged(() => this.#store.get(runRecords, workspaceId, id));
      if (record === undefined) continue;
      const run = parseEssentials(record);
      return this.#isLeftBehind(workspaceId, id, record) ? { ...run, stale: true } : run;
    }
    return undefined;
  }

  /**
   * Returns how a run ended, from the index alone: `stale` when an earlier server process left the run running; undefined when
   * the run is unknown or its index entry is damaged.
   */
  endOf(workspaceId: WorkspaceId, runId: string): RunStatus | 'stale' | undefined {
    const entry = unlessDamaged(() => this.#store.get(runIndex, workspaceId, runId));
    if (entry === undefined) return undefined;
    if (entry.status !== 'running') return entry.status as RunStatus;
    return unlessDamaged(() => this.isStale(workspaceId, runId)) === false ? 'running' : 'stale';
  }

  /** Returns the record of a run. Throws `not_found`. */
  record(workspaceId: WorkspaceId, runId: string): RunRecord {
    const record = this.#find(workspaceId, runId);
    if (record === undefined) throw notFound();
    return record;
  }

  /** Returns whether an earlier server process left a run behind whose record says that it is running. */
  isStale(workspaceId: WorkspaceId, runId: string): boolean {
    const peek = this.#actors.peek({ workspaceId, id: runId });
    return peek === undefined || peek.isLost || !peek.snapshot.hasTag('resident');
  }

  #find(workspaceId: WorkspaceId, runId: string): RunRecord | undefined {
    const record = this.#store.get(runRecords, workspaceId, runId);
    return record === undefined || this.#isDeleted(workspaceId, record.sessionId) ? undefined : record;
  }

  #shown(workspaceId: WorkspaceId, runId: string, record: RunRecord): Uint8Array {
    if (!this.#isLeftBehind(workspaceId, runId, record)) return record.document;
    const output = record.kind === 'agent' ? null : this.#printed.outputOf(workspaceId, runId);
    return asStale(output === null ? record.document : withOutput(record, output));
  }

  #isLeftBehind(workspaceId: WorkspaceId, runId: string, { status }: RunRecord): boolean {
    return status === 'running' && this.isStale(workspaceId, runId);
  }
}
