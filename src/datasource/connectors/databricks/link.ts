/**
 * The Statement Execution API of Databricks (https://docs.databricks.com/api/workspace/statementexecution). Results
 * are links into the cloud's storage. The gateway checks the host of each link, and TLS is verified. The datasource's
 * credentials are not sent to these hosts, because the links contain credentials of their own.
 */
import type { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { DatasourceFailure, type FailureCategory } from '../../failure.ts';
import { onlyReads } from '../../query/read-only.ts';
import type { Parameter, QueryOptions, RowBatch } from '../../rows.ts';
import { targetOf } from '../http/address.ts';
import { listMember, memberOf, textMember } from '../http/answer-members.ts';
import {
  callHttp,
  categoryOfStatus,
  type Reached,
  RemoteError,
  refuseWriting,
  untilAnswered,
} from '../http/client.ts';
import { inBatches } from '../http/page-batches.ts';
import type { DatabaseLink, Target } from '../link.ts';
import type { DatabricksConnection } from './connection.ts';
import { databricksColumn, databricksParameter, databricksValues } from './values.ts';

/** A connection with the agent that reaches it. `agentTo` returns an agent for another host, once the host is checked. */
type Warehouse = Reached<DatabricksConnection> & {
  readonly agentTo: (target: Target, signal: AbortSignal) => Promise<Agent>;
};

/** Returns a link to a SQL warehouse. Nothing is sent until it is used. */
export async function openDatabricks(options: Warehouse): Promise<DatabaseLink> {
  const query = (sql: string, parameters: readonly Parameter[], queryOptions: QueryOptions) =>
    databricksRows(options, sql, parameters, queryOptions);
  return {
    async probe(signal) {
      const sql = `DESCRIBE SCHEMA ${quoted(options.catalog)}.${quoted(options.schema)}`;
      for await (const _ of query(sql, [], { signal, readOnly: true }));
    },
    query,
    close: async () => options.agent.destroy(),
  };
}

/** Returns the category of an error of Databricks. */
export function classifyDatabricks(error: unknown): FailureCategory | undefined {
  if (!(error instanceof RemoteError)) return undefined;
  if (error.reason === 'CANCELED') return 'cancelled';
  const isMissing = /\b(NO_SUCH_CATALOG|SCHEMA_NOT_FOUND|NO_SUCH_SCHEMA|CATALOG_NOT_FOUND)/.test(
    error.message,
  );
  return isMissing ? 'database_missing' : undefined;
}

const RUNNING = new Set(['PENDING', 'RUNNING']);

async function* databricksRows(
  options: Warehouse,
  sql: string,
  parameters: readonly Parameter[],
  { signal, readOnly }: QueryOptions,
): AsyncGenerator<RowBatch> {
  if (readOnly && !onlyReads(sql)) throw refuseWriting();
  const { http_path, catalog, schema } = options;
  const warehouseId = http_path.split('/').at(-1) ?? '';
  const request = {
    warehouse_id: warehouseId,
    catalog,
    schema,
    statement: sql,
    parameters: parameters.map((value, at) => ({ name: `p${at + 1}`, ...databricksParameter(value) })),
    disposition: 'EXTERNAL_LINKS', // inline results are limited to 25 MiB
    format: 'JSON_ARRAY',
    wait_timeout: '0s', // the answer comes at once, with the id that a cancel needs
  };
  let body = await call(options, 'POST', '/api/2.0/sql/statements', untilAnswered(signal), request);
  const path = `/api/2.0/sql/statements/${encodeURIComponent(textMember(body, 'statement_id') ?? '')}`;
  let isRunning = true;
  try {
    signal.throwIfAborted();
    for (
      let wait = 50;
      RUNNING.has(textMember(body, 'status', 'state') ?? '');
      wait = Math.min(wait * 2, 2000)
    ) {
      await delay(wait, undefined, { signal });
      body = await call(options, 'GET', path, signal);
    }
    isRunning = false;
    refuseFailed(body);
    const columns = listMember(body, 'manifest', 'schema', 'columns').map(databricksColumn);
    if (columns.length === 0) return;
    let result = memberOf(body, 'result');
    for (let batches = 0; ; batches++) {
      const [link] = listMember(result, 'external_links');
      const rows = link === undefined ? [] : await fetchLinked(options, link, signal);
      if (rows.length > 0 || batches === 0)
        yield* inBatches(columns, rows, (row) => databricksValues(row, columns));
      const next = memberOf(link, 'next_chunk_index');
      if (typeof next !== 'number') return;
      result = await call(options, 'GET', `${path}/result/chunks/${next}`, signal);
    }
  } finally {
    if (isRunning) {
      await call(options, 'POST', `${path}/cancel`, AbortSignal.timeout(1000)).catch(() => {}); // the statement ends later by itself
    }
  }
}

function refuseFailed(body: unknown): void {
  const state = textMember(body, 'status', 'state') ?? '';
  if (state === 'SUCCEEDED') return;
  const message = textMember(body, 'status', 'error', 'message');
  throw message === undefined && state !== 'CANCELED'
    ? new DatasourceFailure('failed')
    : new RemoteError(state, message ?? '');
}

async function call(
  options: Warehouse,
  method: 'GET' | 'POST',
  path: string,
  signal: AbortSignal,
  request?: object,
): Promise<unknown> {
  const { status, body } = await callHttp(options.agent, {
    method,
    url: new URL(path, options.origin),
    headers: {
      authorization: `Bearer ${options.token}`,
      'user-agent': 'troupe/1',
      ...(request !== undefined && { 'content-type': 'application/json' }),
    },
    signal,
    ...(request !== undefined && { body: JSON.stringify(request) }),
  });
  if (status === 200) return body;
  const message = textMember(body, 'message');
  if (status !== 400 || message === undefined) throw new DatasourceFailure(categoryOfStatus(status));
  throw new RemoteError(textMember(body, 'error_code') ?? '', message);
}

async function fetchLinked(
  { agentTo }: Warehouse,
  link: unknown,
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const external = textMember(link, 'external_link') ?? '';
  if (!URL.canParse(external) || !external.startsWith('https:')) throw new DatasourceFailure('failed');
  const agent = await agentTo(targetOf(external), signal);
  try {
    const { status, body } = await callHttp(agent, {
      method: 'GET',
      url: new URL(external),
      headers: {},
      signal,
    });
    if (status !== 200) throw new DatasourceFailure('failed');
    return listMember({ body }, 'body');
  } finally {
    agent.destroy();
  }
}

function quoted(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}
