/**
 * The audit of a workspace: changes, noted in the commit of their subject, and queries (query-audit.ts), each with its author.
 * Changes and queries are kept apart, each with a limit: the oldest entries are deleted when a workspace exceeds it. Nothing secret
 * belongs in an entry.
 */

import type { Principal } from '#src/base/caller/principal.ts';
import { firstIdAt, isIdOf, timeOfId, type WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { AuditEntry } from '#src/contract/wire/audit.ts';
import type { AuditFilters } from '#src/contract/wire/lists.ts';
import type { RecordKind } from '#storage/codec.ts';
import { newListedId } from '#storage/lists/listed-ids.ts';
import { checkCursor, idBounds, mergedEntries, type PageRequest, pageOf } from '#storage/lists/listing.ts';
import type { Listing } from '#storage/lists/page-builder.ts';
import { slicedListing } from '#storage/lists/sliced-listing.ts';
import { type AuditRecord, auditedQueries, auditRecords } from '#storage/records/audit.ts';
import { workspaceExists } from '#storage/records/identity.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';

/** The caller and the connection of a request. */
export interface AuditContext {
  readonly principal: Principal;
  /** The address of the client, as text. */
  readonly address: string;
  readonly requestId: string;
}

/**
 * The part of an entry about the request. The author may be an operator of the server who is not a member of the
 * workspace of the entry.
 */
type AuditAuthor = Omit<AuditContext, 'principal'> & {
  readonly principal: Pick<Principal, 'workspaceId' | 'userId' | 'tokenId'>;
};

interface NewEntry {
  readonly workspaceId: string;
  /** When `at` is absent, the time in the id is used. */
  readonly record: Omit<AuditRecord, 'at'> & Partial<Pick<AuditRecord, 'at'>>;
}

/** A change to note; `detail` is null when absent. */
export type AuditedChange = Pick<AuditRecord, 'action' | 'target' | 'outcome'> & { readonly detail?: string };

/** A filter and an order for a list of entries. */
export type AuditQuery = PageRequest & AuditFilters;

/** Returns a stored entry in the form that requests see. */
function entryOf(id: string, { at, ...members }: AuditRecord): AuditEntry {
  return { id, createdAt: at, ...members };
}

function matches(record: AuditRecord, { userId, action, target }: AuditQuery): boolean {
  if (userId !== undefined && record.userId !== userId) return false;
  if (target !== undefined && record.target !== target) return false;
  return action === undefined || record.action.startsWith(action);
}

/** The most entries of each kind in a workspace. */
export const MAX_CHANGES = 20_000;
export const MAX_QUERIES = 10_000;
/** The number of entries may exceed its limit by this many, so that many are removed at a time. */
const SLACK = 500;

/** Entries of each kind that are deleted in one commit. */
const MAX_DELETED = 200;

/** The entries of one kind in one workspace. */
interface Shelf {
  count: number;
  /** Entries that this worker has added since the last count. */
  added: number;
  /** The id of the last removed entry; the removal may not be committed yet. */
  removedUpTo: string | undefined;
}

export class AuditTrail {
  readonly #store: Store;
  readonly #onFault: (error: unknown) => void;
  /** Numbers of entries by kind and workspace; counted when the first entry is added. */
  readonly #shelves = new Map<string, Shelf>();

  /** `onFault` is called when queries cannot be noted. */
  constructor(store: Store, onFault: (error: unknown) => void = () => undefined) {
    this.#store = store;
    this.#onFault = onFault;
  }

  /** Notes changes of this turn in its commit. Does nothing for a workspace that is being deleted, or if the server only reads. */
  note({ principal, address, requestId }: AuditAuthor, ...changes: readonly AuditedChange[]): void {
    if (this.#store.isReadOnly) return;
    const { workspaceId, userId, tokenId } = principal;
    const entries = changes.map(({ detail = null, ...rest }) => ({
      workspaceId,
      record: { userId, tokenId, ...rest, detail, address, requestId },
    }));
    this.#store.decide(() => this.#put(auditRecords, MAX_CHANGES, entries));
  }

  /** Notes queries. It never throws, because it is called from a timer, where a throw would end the process. */
  noteQueries(entries: readonly NewEntry[]): void {
    if (this.#store.isReadOnly) return;
    this.#store.decide(() => {
      try {
        this.#put(auditedQueries, MAX_QUERIES, entries);
      } catch (error) {
        this.#onFault(error);
      }
    });
  }

  /** Resolves with a page of a workspace's entries. Rejects with `invalid_cursor`. */
  async list(workspaceId: WorkspaceId, query: AuditQuery): Promise<Listing<AuditEntry>> {
    checkCursor(query.after, (text) => isIdOf('audit', text));
    const bounds = idBounds('audit', query);
    return slicedListing(this.#store, {
      page: query,
      workspaceId,
      entriesAfter: (after) => {
        const page = pageOf({ ...query, after }, bounds);
        const list = (kind: RecordKind<AuditRecord>) => this.#store.list(kind, workspaceId, [], page);
        return mergedEntries(list(auditRecords), list(auditedQueries), query.order);
      },
      itemOf: (record, id) => (matches(record, query) ? entryOf(id, record) : undefined),
    });
  }

  /** Deletes some entries that are older than `ms` (since 1970), in one commit. Returns whether there may be more. */
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

  /** Call it in a shared turn, because all workers write to the list: see `newListedId`. */
  #put(kind: RecordKind<AuditRecord>, most: number, entries: readonly NewEntry[]): void {
    this.#store.write((tx) => {
      for (const { workspaceId, record } of entries) {
        // The workspace may have been deleted meanwhile; an entry written now would never be removed.
        if (!workspaceExists(this.#store, workspaceId)) continue;
        const id = this.#newId(workspaceId);
        // The filters of a list compare ids, so an entry has the time of its id.
        tx.put(kind, { at: timestamp(timeOfId(id)), ...record }, workspaceId, id);
        this.#trim(tx, kind, most, workspaceId);
      }
    });
  }

  #newId(partition: string): string {
    return newListedId(this.#store, 'audit', [
      { kind: auditRecords, partition },
      { kind: auditedQueries, partition },
    ]);
  }

  /** Counts an added entry, and removes the oldest entries beyond the limit. */
  #trim(tx: Transaction, kind: RecordKind<AuditRecord>, most: number, workspaceId: string): void {
    const shelf = this.#shelfOf(kind, most, workspaceId);
    shelf.added++;
    if (++shelf.count <= most + SLACK) return;
    const page = { after: shelf.removedUpTo, limit: shelf.count - most };
    for (const { id } of this.#store.list(kind, workspaceId, [], page)) {
      tx.remove(kind, workspaceId, id);
      shelf.removedUpTo = id;
      shelf.count--;
    }
  }

  /** Where several workers add entries, they are counted again from time to time. */
  #shelfOf(kind: RecordKind<AuditRecord>, most: number, workspaceId: string): Shelf {
    const key = shelfKey(kind, workspaceId);
    const known = this.#shelves.get(key);
    if (known !== undefined && (known.added < SLACK || !this.#store.isShared)) return known;
    const shelf = {
      count: this.#count(kind, workspaceId, most),
      added: 0,
      removedUpTo: known?.removedUpTo,
    };
    this.#shelves.set(key, shelf);
    return shelf;
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
