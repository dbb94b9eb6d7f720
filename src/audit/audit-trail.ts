/**
 * Who did what in a workspace: changes, noted in the commit of what they are about, and queries (query-audit.ts). Both are
 * kept apart and bounded: the oldest go when a workspace has more than it may. Nothing secret belongs in an entry.
 */
import { timestamp } from '#src/core/clock.ts';
import { firstIdAt, isIdOf, newId, type WorkspaceId } from '#src/core/ids.ts';
import type { Principal } from '#src/core/principal.ts';
import { type AuditRecord, auditedQueries, auditRecords } from '#storage/audit.ts';
import type { RecordKind } from '#storage/codec.ts';
import { workspaceRecords } from '#storage/identity.ts';
import {
  type CreationTimes,
  checkCursor,
  idBounds,
  mergedEntries,
  type PageRequest,
  pageOf,
} from '#storage/listing.ts';
import type { Listing } from '#storage/page-builder.ts';
import { slicedListing } from '#storage/sliced-listing.ts';
import type { Store, Transaction } from '#storage/store.ts';

/** Who is at the other end of a request. */
export interface AuditContext {
  readonly principal: Principal;
  /** Of the connection, as text. */
  readonly address: string;
  readonly requestId: string;
}

export interface AuditEntry extends AuditRecord {
  readonly id: string;
}

/** What was done; `detail` is null when absent. */
export type AuditedChange = Pick<AuditRecord, 'action' | 'target' | 'outcome'> & { readonly detail?: string };

/** Which entries to list, and in what order. */
export interface AuditQuery extends PageRequest, CreationTimes {
  readonly userId?: string | undefined;
  /** What the action begins with, such as `token` or `token.create`. */
  readonly action?: string | undefined;
  readonly target?: string | undefined;
}

function matches(record: AuditRecord, { userId, action, target }: AuditQuery): boolean {
  if (userId !== undefined && record.userId !== userId) return false;
  if (target !== undefined && record.target !== target) return false;
  return action === undefined || record.action.startsWith(action);
}

/** Most entries of a workspace, of each kind. */
export const MAX_CHANGES = 20_000;
export const MAX_QUERIES = 10_000;
/** Entries beyond the most that are let be, so that they are removed many at a time. */
const SLACK = 500;

/** Entries of each kind that are deleted in one commit. */
const MAX_DELETED = 200;

/** The entries of one kind in one workspace. */
interface Shelf {
  count: number;
  /** The last that was removed, which may not be committed yet. */
  removedUpTo: string | undefined;
}

export class AuditTrail {
  readonly #store: Store;
  /** By kind and workspace; counted when the first entry is added. */
  readonly #shelves = new Map<string, Shelf>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Notes a change, in the commit of the change. */
  note(tx: Transaction, { principal, address, requestId }: AuditContext, change: AuditedChange): void {
    const { workspaceId, userId, tokenId } = principal;
    const { detail = null, ...rest } = change;
    const record = { at: timestamp(), userId, tokenId, ...rest, detail, address, requestId };
    this.#put(tx, auditRecords, MAX_CHANGES, workspaceId, record);
  }

  /** Notes changes that this turn has made already: they are in its commit all the same. */
  noteAll(actor: AuditContext, changes: readonly AuditedChange[]): void {
    this.#store.write((tx) => {
      for (const change of changes) this.note(tx, actor, change);
    });
  }

  /** Forgets how many entries there are: workspaces have come from another worker, which has added some. */
  forgetCounts(): void {
    this.#shelves.clear();
  }

  /** Notes queries. Those in a workspace that was deleted since are left out: nobody would remove them. */
  noteQueries(entries: readonly { readonly workspaceId: string; readonly record: AuditRecord }[]): void {
    this.#store.write((tx) => {
      for (const { workspaceId, record } of entries)
        if (tx.get(workspaceRecords, workspaceId) !== undefined)
          this.#put(tx, auditedQueries, MAX_QUERIES, workspaceId, record);
    });
  }

  /** Resolves with a page of a workspace's entries. Rejects with `invalid_cursor`. */
  async list(workspaceId: WorkspaceId, query: AuditQuery): Promise<Listing<AuditEntry>> {
    checkCursor(query.after, (text) => isIdOf('audit', text));
    const bounds = idBounds('audit', query);
    return slicedListing(this.#store, {
      page: query,
      entriesAfter: (after) => {
        const page = pageOf({ ...query, after }, bounds);
        const list = (kind: RecordKind<AuditRecord>) => this.#store.list(kind, workspaceId, [], page);
        return mergedEntries(list(auditRecords), list(auditedQueries), query.order);
      },
      itemOf: (record, id) => (matches(record, query) ? { id, ...record } : undefined),
    });
  }

  /** Deletes some entries from before `ms` (since 1970), in one commit. Returns whether there may be more. */
  deleteBefore(workspaceId: WorkspaceId, ms: number): boolean {
    const page = { until: firstIdAt('audit', ms), limit: MAX_DELETED };
    let hasMore = false;
    this.#store.write((tx) => {
      for (const kind of [auditRecords, auditedQueries]) {
        const shelf = this.#shelves.get(shelfKey(kind, workspaceId));
        const old = [...this.#store.list(kind, workspaceId, [], page)];
        for (const { id } of old) {
          tx.remove(kind, workspaceId, id);
          if (shelf !== undefined) shelf.count--;
        }
        hasMore ||= old.length === MAX_DELETED;
      }
    });
    return hasMore;
  }

  #put(
    tx: Transaction,
    kind: RecordKind<AuditRecord>,
    most: number,
    workspaceId: string,
    record: AuditRecord,
  ): void {
    const key = shelfKey(kind, workspaceId);
    const shelf = this.#shelves.get(key) ?? {
      count: this.#count(kind, workspaceId, most),
      removedUpTo: undefined,
    };
    this.#shelves.set(key, shelf);
    tx.put(kind, record, workspaceId, newId('audit'));
    if (++shelf.count <= most + SLACK) return;
    const page = { after: shelf.removedUpTo, limit: shelf.count - most };
    for (const { id } of this.#store.list(kind, workspaceId, [], page)) {
      tx.remove(kind, workspaceId, id);
      shelf.removedUpTo = id;
      shelf.count--;
    }
  }

  #count(kind: RecordKind<AuditRecord>, workspaceId: string, most: number): number {
    let count = 0;
    for (const _ of this.#store.listKeys(kind, workspaceId, [], most + 2 * SLACK)) count++;
    return count;
  }
}

function shelfKey({ name }: RecordKind<AuditRecord>, workspaceId: string): string {
  return `${name} ${workspaceId}`;
}
