/**
 * The client protocol of Trino (https://trino.io/docs/current/develop/client-protocol.html): a statement is posted, and
 * its results are fetched from one `nextUri` after another. It is called directly because the published client follows
 * redirects and any `nextUri`, to any host, on connections of its own.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { DatasourceFailure, type FailureCategory } from '../../failure.ts';
import { onlyReads } from '../../query/read-only.ts';
import type { Parameter, QueryOptions, RowBatch } from '../../rows.ts';
import { listMember, textMember } from '../http/answer-members.ts';
import {
  callHttp,
  categoryOfStatus,
  type HttpAnswer,
  type HttpCall,
  type Reached,
  RemoteError,
  refuseWriting,
  untilAnswered,
} from '../http/client.ts';
import { inBatches } from '../http/page-batches.ts';
import type { DatabaseLink } from '../link.ts';
import type { TrinoConnection } from './connection.ts';
import { literal, trinoColumns, trinoValues } from './values.ts';

/** Returns a link to a Trino coordinator. Nothing is sent until it is used. */
export function openTrino(options: Reached<TrinoConnection>): Promise<DatabaseLink> {
  const query = (sql: string, parameters: readonly Parameter[], queryOptions: QueryOptions) =>
    trinoRows(options, sql, parameters, queryOptions);
  return Promise.resolve({
    async probe(signal: AbortSignal) {
      const name = options.schema.replaceAll("'", "''").toLowerCase();
      const sql = `SELECT 1 FROM information_schema.schemata WHERE schema_name = '${name}'`;
      let found = 0;
      for await (const { rows } of query(sql, [], { signal, readOnly: true })) found += rows.length;
      if (found === 0) throw new DatasourceFailure('database_missing');
    },
    query,
    close: async () => options.agent.destroy(),
  });
}

const CATEGORIES: Readonly<Record<string, FailureCategory>> = {
  CATALOG_NOT_FOUND: 'database_missing',
  SCHEMA_NOT_FOUND: 'database_missing',
  PERMISSION_DENIED: 'authentication',
  USER_CANCELED: 'cancelled',
};

/** Returns the category of an error of Trino, by its name. */
export function classifyTrino(error: unknown): FailureCategory | undefined {
  return error instanceof RemoteError ? CATEGORIES[error.reason] : undefined;
}

async function* trinoRows(
  options: Reached<TrinoConnection>,
  sql: string,
  parameters: readonly Parameter[],
  { signal, readOnly }: QueryOptions,
): AsyncGenerator<RowBatch> {
  const statement =
    parameters.length === 0 ? sql : `EXECUTE statement USING ${parameters.map(literal).join(', ')}`;
  const prepared =
    parameters.length === 0 ? {} : { 'x-trino-prepared-statement': `statement=${encodeURIComponent(sql)}` };
  if (readOnly && !onlyReads(sql)) throw refuseWriting();
  let answer = await call(options, {
    method: 'POST',
    path: '/v1/statement',
    body: statement,
    headers: prepared,
    signal: untilAnswered(signal),
  });
  let next: string | undefined;
  let batches = 0;
  try {
    for (;;) {
      const { body } = answer;
      next = textMember(body, 'nextUri');
      signal.throwIfAborted();
      const message = textMember(body, 'error', 'message');
      if (message !== undefined) throw new RemoteError(textMember(body, 'error', 'errorName') ?? '', message);
      const columns = trinoColumns(body);
      const page = listMember(body, 'data');
      if (page.length > 0 || (next === undefined && batches === 0 && columns.length > 0)) {
        yield* inBatches(columns, page, (row) => trinoValues(row, columns));
        batches++;
      }
      if (next === undefined) return;
      answer = await call(options, { method: 'GET', path: pathOf(next), signal });
    }
  } finally {
    if (next !== undefined) await cancel(options, next);
  }
}

async function cancel(options: Reached<TrinoConnection>, next: string): Promise<void> {
  const signal = AbortSignal.timeout(1000);
  await call(options, { method: 'DELETE', path: pathOf(next), signal }).catch(() => {}); // the statement ends later by itself
}

interface TrinoCall extends Pick<HttpCall, 'method' | 'signal' | 'body'> {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const BUSY_STATUSES = [502, 503, 504];
const MAX_RETRIES = 5;
const RETRY_MS = 100;

async function call(
  options: Reached<TrinoConnection>,
  { path, headers, ...rest }: TrinoCall,
): Promise<HttpAnswer> {
  const { agent, origin, user, password, catalog, schema } = options;
  const credentials = Buffer.from(`${user}:${password ?? ''}`).toString('base64');
  const request = {
    ...rest,
    marksLongIntegers: true,
    url: new URL(path, origin),
    headers: {
      'x-trino-user': user,
      'x-trino-source': 'troupe',
      'x-trino-catalog': catalog,
      'x-trino-schema': schema,
      ...(password !== undefined && { authorization: `Basic ${credentials}` }),
      ...headers,
    },
  };
  let answer = await callHttp(agent, request);
  // The protocol requires clients to retry these statuses.
  for (let retries = 0; BUSY_STATUSES.includes(answer.status) && retries < MAX_RETRIES; retries++) {
    await delay(RETRY_MS, undefined, { signal: rest.signal });
    answer = await callHttp(agent, request);
  }
  const isFine = answer.status === 200 || (rest.method === 'DELETE' && answer.status === 204);
  if (!isFine) throw new DatasourceFailure(categoryOfStatus(answer.status));
  return answer;
}

/** Returns the path of the next request. The host in `nextUri` is ignored: only the checked server is contacted. */
function pathOf(nextUri: string): string {
  if (!URL.canParse(nextUri)) throw new DatasourceFailure('failed');
  const { pathname, search } = new URL(nextUri);
  return pathname.replace(/^\/+/, '/') + search;
}
