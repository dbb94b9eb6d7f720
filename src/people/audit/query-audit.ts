/**
 * Queries of datasources for the audit: the reader, the datasource, the time and duration, the number of rows and the outcome.
 * Neither the text of a statement nor its hash is kept: the text may hold secrets, and most texts are easy to guess.
 *
 * A notebook may make thousands of queries a second. Queries of one user against one datasource with the same outcome become one
 * entry, written once a second with all others: a statement costs one lookup in a map, and the store gets a bounded number of
 * entries. A crash loses the last second.
 */
import { timestamp } from '#src/base/time/clock.ts';
import type { AuditRecord } from '#storage/records/audit.ts';
import type { AuditTrail } from './audit-trail.ts';

/** The reader of a query and its origin. */
export interface QueryOrigin {
  readonly by: 'notebook' | 'agent';
  readonly sessionId: string | null;
  readonly tokenId: string | null;
}

export interface EndedQuery {
  readonly workspaceId: string;
  readonly userId: string;
  readonly slug: string;
  readonly origin: QueryOrigin;
  readonly outcome: AuditRecord['outcome'];
  readonly rows: number;
  readonly durationMs: number;
}

interface Tally {
  readonly first: EndedQuery;
  readonly at: string;
  statements: number;
  rows: number;
  durationMs: number;
}

const WRITE_MS = 1_000;
/** The most different queries that wait for the next write. When there are more, they are written at once. */
const MAX_TALLIES = 1_000;

export class QueryAudit implements Disposable {
  readonly #trail: AuditTrail;
  readonly #tallies = new Map<string, Tally>();
  #timer: NodeJS.Timeout | undefined;

  constructor(trail: AuditTrail) {
    this.#trail = trail;
  }

  note(query: EndedQuery): void {
    const { workspaceId, userId, slug, origin, outcome } = query;
    const key = JSON.stringify([
      workspaceId,
      userId,
      slug,
      outcome,
      origin.sessionId,
      origin.tokenId,
      origin.by,
    ]);
    const known = this.#tallies.get(key);
    const tally = known ?? { first: query, at: timestamp(), statements: 0, rows: 0, durationMs: 0 };
    tally.statements++;
    tally.rows += query.rows;
    tally.durationMs += query.durationMs;
    if (known !== undefined) return;
    this.#tallies.set(key, tally);
    if (this.#tallies.size >= MAX_TALLIES) this.#write();
    else this.#timer ??= setTimeout(() => this.#write(), WRITE_MS).unref();
  }

  /** Writes the waiting entries. */
  [Symbol.dispose](): void {
    this.#write();
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#tallies.size === 0) return;
    const entries = [...this.#tallies.values()].map((tally) => ({
      workspaceId: tally.first.workspaceId,
      record: recordOf(tally),
    }));
    this.#tallies.clear();
    this.#trail.noteQueries(entries);
  }
}

function recordOf({ first, at, statements, rows, durationMs }: Tally): AuditRecord {
  const { userId, slug, outcome, origin } = first;
  const { by, sessionId, tokenId } = origin;
  return {
    at,
    userId,
    tokenId: tokenId ?? '',
    action: 'datasource.query',
    target: slug,
    outcome,
    detail: null,
    address: '',
    requestId: '',
    query: { by, sessionId, statements, rows, durationMs: Math.round(durationMs) },
  };
}
