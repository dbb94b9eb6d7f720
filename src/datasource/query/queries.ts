import type { Principal } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import type { TraceContext } from '#src/base/tracing/trace-context.ts';
import type { Tracer } from '#src/base/tracing/tracer.ts';
import type { QueryAudit, QueryOrigin } from '#src/people/audit/query-audit.ts';
import { type DatasourceRecord, datasourceRecords } from '#storage/records/datasources.ts';
import type { Store } from '#storage/store.ts';
import { mayRead } from '../access.ts';
import { connectorOf } from '../connectors/connection-schema.ts';
import { DatasourceFailure } from '../failure.ts';
import type { Parameter, QueryOptions, RowBatch } from '../rows.ts';
import type { LinkPool } from './link-pool.ts';
import { placeParameters } from './placeholders.ts';
import { controlsTransaction } from './statements.ts';

const NO_TRANSACTIONS =
  'Every statement is committed on its own: transactions of several statements are not supported.';

const CUT_OFF = 'A quotation or a comment in the statement does not end.';
const CHANGED_MEANWHILE =
  'The datasource was changed while the statement waited for a connection. Run it again.';

/**
 * The member of the workspace who runs a statement, and the origin of the statement. The member's right to read is
 * checked for each statement.
 */
export type Reader = Pick<Principal, 'workspaceId' | 'userId' | 'role'> & {
  readonly origin: QueryOrigin;
  /** The trace that the statement belongs to. */
  readonly trace?: TraceContext | undefined;
};

/** The metrics of statements. */
export type QueryMetrics = Pick<ServerMetrics, 'queries'>;

/** Runs statements against datasources. Each has a connection of its own until its rows are read. */
export class Queries {
  readonly #store: Store;
  readonly #pool: LinkPool;

  readonly #audit: QueryAudit;
  readonly #metrics: QueryMetrics;
  readonly #tracer: Tracer | undefined;

  constructor(
    store: Store,
    pool: LinkPool,
    audit: QueryAudit,
    metrics: QueryMetrics,
    tracer?: Tracer | undefined,
  ) {
    this.#metrics = metrics;
    this.#tracer = tracer;
    this.#store = store;
    this.#pool = pool;
    this.#audit = audit;
  }

  /**
   * Returns the kind of a datasource. Throws `not_found` when the reader may not read the
   * datasource.
   */
  kindOf(reader: Omit<Reader, 'origin'>, slug: string): DatasourceRecord['kind'] {
    this.#store.refreshShared();
    const record = this.#store.get(datasourceRecords, reader.workspaceId, slug);
    if (record === undefined || !mayRead(this.#store, reader, record)) throw notFound();
    return record.kind;
  }

  /**
   * Yields the rows of one statement, whose parameters are written `?`. Throws `not_found` when the
   * reader may not read the datasource, and `DatasourceFailure` for every failure of the connection
   * or the statement. Records the outcome in the audit log.
   */
  async *run(
    reader: Reader,
    slug: string,
    sql: string,
    parameters: readonly Parameter[],
    options: QueryOptions,
  ): AsyncGenerator<RowBatch> {
    this.#store.refreshShared();
    const record = this.#store.get(datasourceRecords, reader.workspaceId, slug);
    if (record === undefined) throw notFound();
    const startedAt = performance.now();
    const parent = reader.trace;
    const span =
      parent === undefined
        ? undefined
        : this.#tracer?.start(`query ${record.kind}`, {
            kind: 'client',
            parent,
            attributes: { 'db.system.name': record.kind },
          });
    let outcome: 'done' | 'failed' | 'refused' = 'done';
    let rows = 0;
    try {
      for await (const batch of this.#rows(reader, record, sql, parameters, options)) {
        rows += batch.rowCount ?? batch.rows.length;
        yield batch;
      }
    } catch (error) {
      outcome = error instanceof AppError ? 'refused' : 'failed';
      throw error;
    } finally {
      const { workspaceId, userId, origin } = reader;
      const durationMs = performance.now() - startedAt;
      span?.end({
        attributes: { 'db.response.returned_rows': rows },
        error: outcome === 'done' ? undefined : outcome,
      });
      this.#metrics.queries.of(record.kind, outcome).observe(durationMs / 1000);
      this.#audit.note({ workspaceId, userId, slug, origin, outcome, rows, durationMs });
    }
  }

  async *#rows(
    reader: Reader,
    record: DatasourceRecord,
    sql: string,
    parameters: readonly Parameter[],
    options: QueryOptions,
  ): AsyncGenerator<RowBatch> {
    if (!mayRead(this.#store, reader, record)) throw notFound();
    if (controlsTransaction(record.kind, sql))
      throw new DatasourceFailure('query', undefined, NO_TRANSACTIONS);
    const { placeholder, syntax } = connectorOf(record.kind);
    const placed =
      parameters.length === 0
        ? { sql, count: 0, isCutOff: false }
        : placeParameters(syntax, sql, (position) => placeholder(position, parameters[position - 1] ?? null));
    if (placed.count !== parameters.length) {
      const counts = `The statement has ${placed.count} placeholders, but ${parameters.length} parameters were given.`;
      throw new DatasourceFailure('query', undefined, placed.isCutOff ? `${counts} ${CUT_OFF}` : counts);
    }
    const lease = await this.#pool.acquire(reader.workspaceId, record, options.signal);
    let isDone = false;
    try {
      this.#refuseOutdated(reader, record);
      yield* lease.link.query(placed.sql, parameters, options);
      isDone = true;
    } finally {
      lease.release(isDone);
    }
  }

  /** Throws when the datasource or the reader's rights have changed while a statement waited for its connection. */
  #refuseOutdated(reader: Reader, { id, slug, revision }: DatasourceRecord): void {
    this.#store.refreshShared();
    const now = this.#store.get(datasourceRecords, reader.workspaceId, slug);
    if (now === undefined || !mayRead(this.#store, reader, now)) throw notFound();
    if (now.id !== id || now.revision !== revision)
      throw new DatasourceFailure('query', undefined, CHANGED_MEANWHILE);
  }
}
