import type { AuditEntry } from '#src/contract/wire/audit.ts';
import { defineRecord } from '../codec.ts';

/** One audited action and its author. Key: workspace id, audit id (time-ordered). */
export interface AuditRecord extends Omit<AuditEntry, 'id' | 'createdAt'> {
  readonly at: string;
}

/** Changes. Any worker adds them, in shared turns. The worker that finds old ones removes them. */
export const auditRecords = defineRecord<AuditRecord>('audit', 1);
/** Queries, apart from changes, so that many queries cannot push out the changes. */
export const auditedQueries = defineRecord<AuditRecord>('audit-query', 1);

/** The last entry of a workspace's audit that was delivered to the receiver of the audit. Key: workspace id. */
export const auditCursors = defineRecord<string>('audit-cursor', 1);
