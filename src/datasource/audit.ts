import { timestamp } from '#src/core/clock.ts';
import type { WorkspaceId } from '#src/core/ids.ts';
import { newId } from '#src/core/ids.ts';
import type { Principal } from '#src/core/principal.ts';
import { type AuditRecord, auditRecords } from '#storage/datasources.ts';
import { invalidCursor, type Listing, listingOf, type PageRequest } from '#storage/listing.ts';
import type { Store, Transaction } from '#storage/store.ts';

/** Who is at the other end of a request, for the audit. */
export interface Actor {
  readonly principal: Principal;
  /** Of the connection, as text. */
  readonly address: string;
  readonly requestId: string;
}

export interface AuditEntry extends AuditRecord {
  readonly id: string;
}

/** Notes what was done, in the commit of what was done. Nothing of a connection belongs in `detail`. */
export function noteAudit(
  tx: Transaction,
  { principal, address, requestId }: Actor,
  entry: Pick<AuditRecord, 'action' | 'target' | 'outcome'> & { readonly detail?: string },
): void {
  const { workspaceId, userId, tokenId } = principal;
  const { action, target, outcome, detail = null } = entry;
  const record = { at: timestamp(), userId, tokenId, action, target, outcome, detail, address, requestId };
  tx.put(auditRecords, record, workspaceId, newId('audit'));
}

/** The audit of a workspace, oldest first. */
export function listAudit(
  store: Store,
  workspaceId: WorkspaceId,
  { after, limit }: PageRequest,
): Listing<AuditEntry> {
  if (after !== undefined && store.get(auditRecords, workspaceId, after) === undefined) throw invalidCursor();
  const entries = store.list(auditRecords, workspaceId, [], { after, limit: limit + 1 });
  return listingOf(entries, limit, (record, id) => ({ id, ...record }));
}
