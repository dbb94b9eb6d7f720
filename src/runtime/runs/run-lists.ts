/**
 * The indexes of the runs of a workspace. They are written in the commit that changes a run. A list
 * reads the index with the fewest entries to examine, and reads only runs that it shows.
 */
import { RUN_STATUSES } from '#machines/run.ts';
import { isIdOf, type WorkspaceId } from '#src/base/ids.ts';
import { metadataFilter } from '#src/base/metadata-filter.ts';
import type { RunFilters } from '#src/contract/wire/lists.ts';
import type { RunKind, RunStatus } from '#src/contract/wire/run.ts';
import { DAMAGED, readOrDamaged, unlessDamaged } from '#storage/damaged.ts';
import type { CommittedPage, Entry } from '#storage/lists/committed-records.ts';
import {
  type Bounds,
  checkCursor,
  endBounds,
  idBounds,
  mergedEntries,
  type PageRequest,
  pageOf,
} from '#storage/lists/listing.ts';
import { idAt, isPlaceOf, placeOf } from '#storage/lists/places.ts';
import {
  agentRuns,
  endedRuns,
  endPlaces,
  environmentRuns,
  type RunIndexEntry,
  runIndex,
  sessionRuns,
  statusRuns,
  userRuns,
} from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';

/** The filters of a list of runs. An absent member does not filter. */
export type RunQuery = PageRequest & RunFilters;

/** Returns the list of a session's runs of one kind. A notebook and its agent may share an id, so each of them has its own list. */
export function listOf(kind: RunKind) {
  return kind === 'agent' ? agentRuns : sessionRuns;
}

/** Lists a new run. */
export function addToIndex(
  tx: Transaction,
  workspaceId: WorkspaceId,
  runId: string,
  entry: RunIndexEntry,
): void {
  const { kind, sessionId, environmentId, status, createdBy } = entry;
  tx.put(runIndex, entry, workspaceId, runId);
  tx.mark(listOf(kind), workspaceId, sessionId, runId);
  tx.mark(statusRuns, workspaceId, status, runId);
  if (createdBy !== undefined) tx.mark(userRuns, workspaceId, createdBy, runId);
  if (environmentId !== null) tx.mark(environmentRuns, workspaceId, environmentId, runId);
}

/** Records how and when a listed run has ended. `known` is the run's entry in the index; without it, the index is read. */
export function noteEnd(
  tx: Transaction,
  workspaceId: WorkspaceId,
  runId: string,
  { status, finishedAt }: { readonly status: string; readonly finishedAt: string },
  known?: RunIndexEntry,
): void {
  const entry = known ?? tx.get(runIndex, workspaceId, runId);
  if (entry === undefined || entry.status === status) return;
  tx.remove(statusRuns, workspaceId, entry.status, runId);
  tx.mark(statusRuns, workspaceId, status, runId);
  tx.mark(endedRuns, workspaceId, entry.kind, entry.sessionId, status, runId);
  tx.mark(endPlaces, workspaceId, placeOf(finishedAt, runId));
  tx.put(runIndex, { ...entry, status, finishedAt }, workspaceId, runId);
}

/** The session that a run belongs to. */
export type SessionOfRun = Pick<RunIndexEntry, 'kind' | 'sessionId'>;

/**
 * Removes a run from every list. If the run's entry in the index is damaged, `sessionOf` is called, which returns the session of
 * the run. The run then stays in the lists of its environment, of its user and of ends, whose readers skip it.
 */
export function removeFromIndex(
  tx: Transaction,
  workspaceId: WorkspaceId,
  runId: string,
  sessionOf: () => SessionOfRun | undefined,
): void {
  const entry = readOrDamaged(() => tx.get(runIndex, workspaceId, runId));
  if (entry === undefined) return;
  tx.remove(runIndex, workspaceId, runId);
  if (entry === DAMAGED) {
    for (const status of RUN_STATUSES) tx.remove(statusRuns, workspaceId, status, runId);
    const session = sessionOf();
    if (session === undefined) return;
    const { kind, sessionId } = session;
    tx.remove(listOf(kind), workspaceId, sessionId, runId);
    for (const status of RUN_STATUSES) tx.remove(endedRuns, workspaceId, kind, sessionId, status, runId);
    return;
  }
  const { kind, sessionId, environmentId, status, createdBy, finishedAt } = entry;
  tx.remove(listOf(kind), workspaceId, sessionId, runId);
  if (createdBy !== undefined) tx.remove(userRuns, workspaceId, createdBy, runId);
  if (finishedAt !== undefined) tx.remove(endPlaces, workspaceId, placeOf(finishedAt, runId));
  tx.remove(statusRuns, workspaceId, status, runId);
  tx.remove(endedRuns, workspaceId, kind, sessionId, status, runId);
  if (environmentId !== null) tx.remove(environmentRuns, workspaceId, environmentId, runId);
}

/** Returns whether a list is in the order of ends of the runs. Otherwise it is in the order of their ids. */
export function isByEnd({ finishedAfter, finishedBefore }: RunQuery): boolean {
  return finishedAfter !== undefined || finishedBefore !== undefined;
}

/**
 * Returns a function that takes a cursor and yields the runs after the cursor, in the order of the query. For a run that does not
 * match the query, or whose entry is damaged, the function yields undefined. With a `horizon` it yields only runs before that id,
 * or before that place in the list of ends. Throws `invalid_cursor`.
 */
export function runFinder(
  store: Store,
  workspaceId: WorkspaceId,
  query: RunQuery,
  horizon?: string,
): (after: string | undefined) => Iterable<Entry<FoundRun | undefined>> {
  const ids = idBounds('run', query);
  const byEnd = isByEnd(query);
  checkCursor(query.after, (text) => (byEnd ? isPlaceOf('run', text) : isIdOf('run', text)));
  const { low, high } = byEnd ? endBounds(query) : ids;
  const [until] = [high, horizon].filter((bound) => bound !== undefined).sort();
  const search: Search = { store, workspaceId, query, statuses: statusesOf(query) };
  return (after) => {
    const page = pageOf({ ...query, after }, { low, high: until });
    return byEnd ? runsByEnd(search, page, ids) : runsById(search, page);
  };
}

/** A run in the index, with its id. */
export interface FoundRun {
  readonly runId: string;
  readonly entry: RunIndexEntry;
}

interface Search {
  readonly store: Store;
  readonly workspaceId: WorkspaceId;
  readonly query: RunQuery;
  /** The statuses to search for; undefined for all. */
  readonly statuses: readonly RunStatus[] | undefined;
}

function statusesOf({ status }: RunQuery): readonly RunStatus[] | undefined {
  if (status === undefined) return undefined;
  const statuses = new Set([status].flat());
  return RUN_STATUSES.every((one) => statuses.has(one)) ? undefined : [...statuses];
}

function* runsByEnd(
  search: Search,
  page: CommittedPage,
  { low = '', high }: Bounds,
): Generator<Entry<FoundRun | undefined>> {
  const { store, workspaceId } = search;
  for (const { id: place } of store.list(endPlaces, workspaceId, [], page)) {
    const runId = idAt(place);
    const isWithin = runId > low && (high === undefined || runId < high);
    yield { id: place, value: isWithin ? foundRun(search, runId) : undefined };
  }
}

function* runsById(search: Search, page: CommittedPage): Generator<Entry<FoundRun | undefined>> {
  for (const id of idsOf(search, page)) yield { id, value: foundRun(search, id) };
}

/** Returns the run if it matches the query. */
function foundRun({ store, workspaceId, query, statuses }: Search, runId: string): FoundRun | undefined {
  const entry = unlessDamaged(() => store.get(runIndex, workspaceId, runId));
  return entry !== undefined && matches(entry, query, statuses) ? { runId, entry } : undefined;
}

/** Yields the ids of the narrowest index, in its order. */
function idsOf({ store, workspaceId, query, statuses }: Search, page: CommittedPage): Generator<string> {
  const { sessionId, kind, environmentId, createdBy, order } = query;
  const merged = (lists: readonly Generator<Entry<unknown>>[]) =>
    ids(lists.reduce((all, list) => mergedEntries(all, list, order)));
  const withStatus = (among: readonly RunStatus[]) =>
    merged(among.map((status) => store.list(statusRuns, workspaceId, [status], page)));
  // The index of runs in progress is the narrowest: few runs are in progress, in any session.
  if (statuses?.every((status) => status === 'running')) return withStatus(statuses);
  if (sessionId !== undefined) {
    const kinds: readonly RunKind[] = kind === undefined ? ['notebook', 'agent'] : [kind];
    const isEnded = statuses !== undefined && !statuses.includes('running');
    return merged(
      kinds.flatMap((of) =>
        isEnded
          ? statuses.map((status) => store.list(endedRuns, workspaceId, [of, sessionId, status], page))
          : [store.list(listOf(of), workspaceId, [sessionId], page)],
      ),
    );
  }
  if (environmentId !== undefined)
    return ids(store.list(environmentRuns, workspaceId, [environmentId], page));
  if (createdBy !== undefined) return ids(store.list(userRuns, workspaceId, [createdBy], page));
  if (statuses !== undefined) return withStatus(statuses);
  return ids(store.list(runIndex, workspaceId, [], page));
}

function matches(run: RunIndexEntry, query: RunQuery, statuses: Search['statuses']): boolean {
  const { sessionId, kind, environmentId, createdBy } = query;
  return (
    (sessionId === undefined || run.sessionId === sessionId) &&
    (kind === undefined || run.kind === kind) &&
    (environmentId === undefined || run.environmentId === environmentId) &&
    (createdBy === undefined || run.createdBy === createdBy) &&
    (statuses === undefined || statuses.some((status) => status === run.status)) &&
    metadataFilter(query.metadata)(run.metadata)
  );
}

function* ids(entries: Iterable<Entry<unknown>>): Generator<string> {
  for (const { id } of entries) yield id;
}
