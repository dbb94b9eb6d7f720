import { defineRecord } from './codec.ts';

/** One audited action and its author. Key: workspace id, audit id (time-ordered). */
export interface AuditRecord {
  readonly at: string;
  readonly userId: string;
  /** Empty where no token is known: a notebook queries for the member who opened its session. */
  readonly tokenId: string;
  readonly action: string;
  readonly target: string;
  readonly outcome: 'done' | 'failed' | 'refused';
  readonly detail: string | null;
  /** The address of the connection; empty for actions of a notebook or an agent. */
  readonly address: string;
  readonly requestId: string;
  /** Of a `datasource.query`. */
  readonly query?: AuditedQueries;
}

/** Statements of one user against one datasource in about a second that ended the same way. */
export interface AuditedQueries {
  readonly by: 'notebook' | 'agent';
  /** The notebook session, where it is known. */
  readonly sessionId: string | null;
  readonly statements: number;
  /** Those that were given out. */
  readonly rows: number;
  /** Of all of them together, until the last row was taken. */
  readonly durationMs: number;
}

/** Changes. Any worker puts them, in shared turns; old ones are removed by whichever worker finds them. */
export const auditRecords = defineRecord<AuditRecord>('audit', 1);
/** Queries, apart from changes, so that many queries cannot push out the changes. */
export const auditedQueries = defineRecord<AuditRecord>('audit-query', 1);
