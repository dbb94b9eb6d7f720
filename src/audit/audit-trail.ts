/**
 * Who did what in a workspace: changes, noted in the commit of what they are about, and queries (query-audit.ts). Both are
 * kept apart and bounded: the oldest go when a workspace has more than it may. Nothing secret belongs in an entry.
 */
import { timestamp } from '#src/core/clock.ts';
import { newId, type WorkspaceId } from '#src/core/ids.ts';
import type { Principal } from '#src/core/principal.ts';
import { type AuditRecord, auditedQueries, auditRecords } from '#storage/audit.ts';
import type { RecordKind } from '#storage/codec.ts';
import { invalidCursor, type Listing, listingOf, type PageRequest } from '#storage/listing.ts';
import type { Entry, Store, Transaction } from '#storage/store.ts';

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

/** Most entries of a workspace, of each kind. */
export const MAX_CHANGES = 20_000;
export const MAX_QUERIES = 10_000;
/** Entries beyond the most that are let be, so that they are removed many at a time. */
const SLACK = 500;

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

  /** Notes queries. */
  noteQueries(entries: readonly { readonly workspaceId: string; readonly record: AuditRecord }[]): void {
    this.#store.write((tx) => {
      for (const { workspaceId, record } of entries)
        this.#put(tx, auditedQueries, MAX_QUERIES, workspaceId, record);
    });
  }

  /** The audit of a workspace, oldest first. Throws `invalid_cursor`. */
  list(workspaceId: WorkspaceId, { after, limit }: PageRequest): Listing<AuditEntry> {
    const isKnown = (kind: RecordKind<AuditRecord>, id: string) =>
      this.#store.get(kind, workspaceId, id) !== undefined;
    if (after !== undefined && !isKnown(auditRecords, after) && !isKnown(auditedQueries, after))
      throw invalidCursor();
    const page = { after, limit: limit + 1 };
    const entries: Entry<AuditRecord>[] = [auditRecords, auditedQueries].flatMap((kind) => [
      ...this.#store.list(kind, workspaceId, [], page),
    ]);
    entries.sort((a, b) => (a.id < b.id ? -1 : 1));
    return listingOf(entries, limit, (record, id) => ({ id, ...record }));
  }

  #put(
    tx: Transaction,
    kind: RecordKind<AuditRecord>,
    most: number,
    workspaceId: string,
    record: AuditRecord,
  ): void {
    const key = `${kind.name} ${workspaceId}`;
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
