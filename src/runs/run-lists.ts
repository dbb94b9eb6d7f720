/**
 * The indexes of the runs of a workspace. They are written in the commit that changes a run. A list
 * reads the index with the fewest entries to examine, and reads only runs that it shows.
 */
import { RUN_STATUSES } from '#machines/run.ts';
import { isIdOf, type WorkspaceId } from '#src/core/ids.ts';
import { metadataFilter } from '#src/core/metadata-filter.ts';
import type { RunFilters } from '#src/wire/lists.ts';
import type { RunKind } from '#src/wire/run.ts';
import { DAMAGED, readOrDamaged, unlessDamaged } from '#storage/damaged.ts';
import type { Entry, Page } from '#storage/lists/committed-records.ts';
import { checkCursor, idBounds, mergedEntries, type PageRequest, pageOf } from '#storage/lists/listing.ts';
import {
  agentRuns,
  endedRuns,
  environmentRuns,
  type RunIndexEntry,
  runIndex,
  sessionRuns,
  statusRuns,
} from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';

/** The filters of a list of runs. Absent members filter nothing. */
export type RunQuery = PageRequest & RunFilters;

/** Returns the list of a session's runs of one kind. A notebook and its agent may share an id, so each has a list. */
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
  const { kind, sessionId, environmentId, status } = entry;
  tx.put(runIndex, entry, workspaceId, runId);
  tx.put(listOf(kind), null, workspaceId, sessionId, runId);
  tx.put(statusRuns, null, workspaceId, status, runId);
  if (status !== 'running') tx.put(endedRuns, null, workspaceId, kind, sessionId, status, runId);
  if (environmentId !== null) tx.put(environmentRuns, null, workspaceId, environmentId, runId);
}

/** Notes how a listed run has ended. `known` is its entry in the index; when it is absent, the index is read. */
export function noteStatus(
  tx: Transaction,
  workspaceId: WorkspaceId,
  runId: string,
  status: string,
  known?: RunIndexEntry,
): void {
  const entry = known ?? tx.get(runIndex, workspaceId, runId);
  if (entry === undefined || entry.status === status) return;
  tx.remove(statusRuns, workspaceId, entry.status, runId);
  tx.put(statusRuns, null, workspaceId, status, runId);
  tx.put(endedRuns, null, workspaceId, entry.kind, entry.sessionId, status, runId);
  tx.put(runIndex, { ...entry, status }, workspaceId, runId);
}

/** The session that a run belongs to. */
export type SessionOfRun = Pick<RunIndexEntry, 'kind' | 'sessionId'>;

/**
 * Removes a run from every list. When the run's entry in the index is damaged, `sessionOf` is
 * called, which returns the session that the run belongs to. In this case the run stays in the list
 * of its environment, whose readers skip it.
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
  const { kind, sessionId, environmentId, status } = entry;
  tx.remove(listOf(kind), workspaceId, sessionId, runId);
  tx.remove(statusRuns, workspaceId, status, runId);
  tx.remove(endedRuns, workspaceId, kind, sessionId, status, runId);
  if (environmentId !== null) tx.remove(environmentRuns, workspaceId, environmentId, runId);
}

/**
 * Returns a function that takes an id and yields the runs after it, in the order of the query. The value is undefined for a run
 * that does not match the query, or whose entry is damaged. With a `horizon` it yields only runs with smaller ids. Throws
 * `invalid_cursor`.
 */
export function runFinder(
  store: Store,
  workspaceId: WorkspaceId,
  query: RunQuery,
  horizon?: string,
): (after: string | undefined) => Iterable<Entry<RunIndexEntry | undefined>> {
  checkCursor(query.after, (text) => isIdOf('run', text));
  const { low, high } = idBounds('run', query);
  const [until] = [high, horizon].filter((bound) => bound !== undefined).sort();
  const bounds = { low, high: until };
  return (after) => entriesOf(store, workspaceId, query, pageOf({ ...query, after }, bounds));
}

function* entriesOf(
  store: Store,
  workspaceId: WorkspaceId,
  query: RunQuery,
  page: Page,
): Generator<Entry<RunIndexEntry | undefined>> {
  for (const id of idsOf(store, workspaceId, query, page)) {
    const entry = unlessDamaged(() => store.get(runIndex, workspaceId, id));
    yield { id, value: entry !== undefined && matches(entry, query) ? entry : undefined };
  }
}

/** Yields the ids of the narrowest index, in its order. */
function idsOf(
  store: Store,
  workspaceId: WorkspaceId,
  { sessionId, kind, environmentId, status, order }: RunQuery,
  page: Page,
): Generator<string> {
  // Few runs are in progress, in any session.
  if (status === 'running') return ids(store.list(statusRuns, workspaceId, [status], page));
  if (sessionId !== undefined) {
    const list = (of: RunKind) =>
      status === undefined
        ? store.list(listOf(of), workspaceId, [sessionId], page)
        : store.list(endedRuns, workspaceId, [of, sessionId, status], page);
    return ids(kind === undefined ? mergedEntries(list('notebook'), list('agent'), order) : list(kind));
  }
  if (environmentId !== undefined)
    return ids(store.list(environmentRuns, workspaceId, [environmentId], page));
  if (status !== undefined) return ids(store.list(statusRuns, workspaceId, [status], page));
  return ids(store.list(runIndex, workspaceId, [], page));
}

function matches(run: RunIndexEntry, query: RunQuery): boolean {
  const { sessionId, kind, environmentId, status } = query;
  return (
    (sessionId === undefined || run.sessionId === sessionId) &&
    (kind === undefined || run.kind === kind) &&
    (environmentId === undefined || run.environmentId === environmentId) &&
    (status === undefined || run.status === status) &&
    metadataFilter(query.metadata)(run.metadata)
  );
}

function* ids(entries: Iterable<Entry<unknown>>): Generator<string> {
  for (const { id } of entries) yield id;
}
