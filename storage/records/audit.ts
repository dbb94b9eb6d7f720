import type { AuditEntry } from '#src/contract/wire/audit.ts';
import { defineRecord } from '../codec.ts';

/** One audited action and its author. Key: workspace id, audit id (time-ordered). */
export interface AuditRecord extends Omit<AuditEntry, 'id' | 'createdAt'> {
  readonly at: string;
}

/** Changes. Any worker puts them, in shared turns; old ones are removed by whichever worker finds them. */
export const auditRecords = defineRecord<AuditRecord>('audit', 1);
/** Queries, apart from changes, so that many queries cannot push out the changes. */
export const auditedQueries = defineRecord<AuditRecord>('audit-query', 1);

/** The last entry of a workspace's audit that the receiver has got. Key: workspace id. */
export const auditCursors = defineRecord<string>('audit-cursor', 1);
