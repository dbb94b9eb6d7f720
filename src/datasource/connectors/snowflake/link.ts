/**
 * The SQL API of Snowflake (https://docs.snowflake.com/en/developer-guide/sql-api). It is called directly because the
 * vendor's driver fetches results from other hosts, on connections that no gateway can check; the API returns them from
 * the account's own host.
 */
import { createHash, createPublicKey, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { DatasourceFailure, type FailureCategory } from '../../failure.ts';
import { onlyReads } from '../../query/read-only.ts';
import type { Parameter, QueryOptions, RowBatch } from '../../rows.ts';
import { listMember, memberOf, textMember } from '../http/answer-members.ts';
import {
  callHttp,
  categoryOfStatus,
  type HttpAnswer,
  type Reached,
  RemoteError,
  refuseWriting,
  untilAnswered,
} from '../http/client.ts';
import { signToken } from '../http/json-web-token.ts';
import { inBatches } from '../http/page-batches.ts';
import type { DatabaseLink } from '../link.ts';
import type { SnowflakeConnection } from './connection.ts';
import { snowflakeColumn, snowflakeValues } from './values.ts';

/** Returns a link to a Snowflake account. Nothing is sent until it is used. */
export async function openSnowflake(options: Reached<SnowflakeConnection>): Promise<DatabaseLink> {
  const query = (sql: string, parameters: readonly Parameter[], queryOptions: QueryOptions) =>
    snowflakeRows(options, sql, parameters, queryOptions);
  return {
    async probe(signal) {
      // The API accepts databases and schemas that do not exist; the link then has no schema.
      const sql = 'SELECT CURRENT_SCHEMA()';
      for await (const { rows } of query(sql, [], { signal, readOnly: true })) {
        if (rows[0]?.[0] === null) throw new DatasourceFailure('database_missing');
      }
    },
    query,
    close: async () => options.agent.destroy(),
  };
}

const CATEGORIES: Readonly<Record<string, FailureCategory>> = {
  '000604': 'cancelled',
  '390201': 'database_missing', // the warehouse, database or schema does not exist, or the role may not use it
  '390189': 'database_missing', // the role does not exist, or the account may not use it
};

/** Returns the category of an error of Snowflake, by its code. */
export function classifySnowflake(error: unknown): FailureCategory | undefined {
  if (!(error instanceof RemoteError)) return undefined;
  return CATEGORIES[error.reason] ?? (error.reason.startsWith('3903') ? 'authentication' : undefined);
}

/**
 * Returns whether `->>` may join several statements of any kind. Snowflake counts joined statements
 * as one statement.
 */
const isChain = (sql: string) => sql.includes('->>');
/**
 * The parameters that change the form of values or of the result, for which an account or a user may have other defaults. The
 * API does not allow setting AUTOCOMMIT.
 */
const PINNED = { MULTI_STATEMENT_COUNT: '1', BINARY_OUTPUT_FORMAT: 'HEX', ROWS_PER_RESULTSET: '0' };
const SUBMITTED = 202;
const FIRST_WAIT_MS = 50;
const MAX_WAIT_MS = 2000;

async function* snowflakeRows(
  options: Reached<SnowflakeConnection>,
  sql: string,
  parameters: readonly Parameter[],
  { signal, readOnly }: QueryOptions,
): AsyncGenerator<RowBatch> {
  if (readOnly && !onlyReads(sql, isChain)) throw refuseWriting();
  const { warehouse, database, schema, role } = options;
  const bindings = Object.fromEntries(parameters.map((value, at) => [String(at + 1), bindingOf(value)]));
  const body = JSON.stringify({
    statement: sql,
    warehouse,
    database,
    schema,
    role,
    bindings,
    parameters: PINNED,
  });
  // Asynchronous: the answer comes at once, with the handle that a cancel needs.
  const submitted = await call(
    options,
    'POST',
    `/api/v2/statements?async=true&requestId=${randomUUID()}`,
    untilAnswered(signal),
    body,
  );
  const handle = encodeURIComponent(textMember(submitted.body, 'statementHandle') ?? '');
  const path = `/api/v2/statements/${handle}`;
  let isRunning = true;
  try {
    signal.throwIfAborted();
    let answer = submitted;
    for (let wait = FIRST_WAIT_MS; answer.status === SUBMITTED; wait = Math.min(wait * 2, MAX_WAIT_MS)) {
      await delay(wait, undefined, { signal });
      answer = await call(options, 'GET', path, signal);
    }
    isRunning = false;
    const meta = memberOf(answer.body, 'resultSetMetaData');
    const types = listMember(meta, 'rowType');
    const columns = types.map(snowflakeColumn);
    if (columns.length === 0) return;
    const partitions = Math.max(1, listMember(meta, 'partitionInfo').length);
    for (let at = 0; at < partitions; at++) {
      if (at > 0) answer = await call(options, 'GET', `${path}?partition=${at}`, signal);
      yield* inBatches(columns, listMember(answer.body, 'data'), (row) => snowflakeValues(row, types));
    }
  } finally {
    if (isRunning) await cancel(options, path);
  }
}

async function cancel(options: Reached<SnowflakeConnection>, path: string): Promise<void> {
  const signal = AbortSignal.timeout(1000);
  await call(options, 'POST', `${path}/cancel`, signal).catch(() => {}); // the statement ends later by itself
}

async function call(
  options: Reached<SnowflakeConnection>,
  method: 'GET' | 'POST',
  path: string,
  signal: AbortSignal,
  body?: string,
): Promise<HttpAnswer> {
  const answer = await callHttp(options.agent, {
    method,
    url: new URL(path, options.origin),
    headers: {
      accept: 'application/json',
      'user-agent': 'troupe/1',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...authorization(options),
    },
    signal,
    ...(body !== undefined && { body }),
  });
  const { status } = answer;
  if (status === 200 || status === SUBMITTED) return answer;
  const message = textMember(answer.body, 'message');
  if (status === 401 || status === 403 || message === undefined)
    throw new DatasourceFailure(categoryOfStatus(status));
  throw new RemoteError(textMember(answer.body, 'code') ?? '', message);
}

const TOKEN_SECONDS = 600;

function authorization({
  account,
  user,
  private_key,
  token,
}: Reached<SnowflakeConnection>): Record<string, string> {
  if (private_key === undefined) {
    return {
      authorization: `Bearer ${token}`,
      'x-snowflake-authorization-token-type': 'PROGRAMMATIC_ACCESS_TOKEN',
    };
  }
  // In an account locator, the region after the first dot is not part of the account's name.
  const subject = `${account.split('.', 1)[0]}.${user}`.toUpperCase();
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: `${subject}.${fingerprintOf(private_key)}`,
    sub: subject,
    iat: now,
    exp: now + TOKEN_SECONDS,
  };
  return {
    authorization: `Bearer ${signToken(private_key, {}, claims)}`,
    'x-snowflake-authorization-token-type': 'KEYPAIR_JWT',
  };
}

function fingerprintOf(privateKey: string): string {
  try {
    const spki = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
    return `SHA256:${createHash('sha256').update(spki).digest('base64')}`;
  } catch {
    throw new DatasourceFailure('authentication'); // the error may show parts of the key
  }
}

function bindingOf(value: Parameter): { type: string; value: string | null } {
  if (value === null) return { type: 'TEXT', value: null };
  if (value instanceof Uint8Array) return { type: 'BINARY', value: Buffer.from(value).toString('hex') };
  if (typeof value === 'boolean') return { type: 'BOOLEAN', value: String(value) };
  if (typeof value === 'bigint') return { type: 'FIXED', value: String(value) };
  const text = String(value);
  return typeof value === 'number'
    ? { type: 'REAL', value: text.replace('Infinity', 'inf') }
    : { type: 'TEXT', value: text };
}
