/**
 * The REST API of BigQuery (https://cloud.google.com/bigquery/docs/reference/rest). It is called directly because the
 * vendor's driver opens connections of its own, to hosts and proxies from its environment, which no gateway can check.
 */
import { randomUUID } from 'node:crypto';
import { DatasourceFailure, type FailureCategory } from '../../failure.ts';
import type { Parameter, QueryOptions, RowBatch } from '../../rows.ts';
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
import type { DatabaseLink } from '../link.ts';
import type { BigqueryConnection } from './connection.ts';
import { accessTokens, type BigqueryTokens, type TokenService } from './tokens.ts';
import { bigqueryColumn, bigqueryParameter, bigqueryValues } from './values.ts';

interface Api extends Reached<BigqueryConnection> {
  readonly access: BigqueryTokens;
}

/** Returns a link to a BigQuery project. Nothing is sent until it is used. */
export async function openBigquery(
  connection: Reached<BigqueryConnection>,
  tokens: TokenService,
): Promise<DatabaseLink> {
  const { agent, dataset, service_account } = connection;
  const api = { ...connection, access: accessTokens(tokens, service_account) };
  return {
    async probe(signal) {
      await call(api, 'GET', `/datasets/${encodeURIComponent(dataset)}`, signal);
      await insertJob(api, { query: 'SELECT 1', parameters: [], dryRun: true }, signal);
    },
    query: (sql, parameters, queryOptions) => bigqueryRows(api, sql, parameters, queryOptions),
    async close() {
      agent.destroy();
      tokens.agent.destroy();
    },
  };
}

const CATEGORIES: Readonly<Record<string, FailureCategory>> = {
  accessDenied: 'authentication',
  authError: 'authentication',
  stopped: 'cancelled',
};

/** Returns the category of an error of BigQuery, by the `reason` in it. */
export function classifyBigquery(error: unknown): FailureCategory | undefined {
  return error instanceof RemoteError ? CATEGORIES[error.reason] : undefined;
}

const WAIT_MS = 10_000;
const PAGE_ROWS = 10_000;

async function* bigqueryRows(
  api: Api,
  sql: string,
  parameters: readonly Parameter[],
  { signal, readOnly }: QueryOptions,
): AsyncGenerator<RowBatch> {
  if (readOnly) {
    // Only the service can classify a script. A dry run does so without any effect or cost.
    const plan = await insertJob(api, { query: sql, parameters, dryRun: true }, signal);
    if (textMember(plan, 'statistics', 'query', 'statementType') !== 'SELECT') throw refuseWriting();
  }
  const job = await insertJob(api, { query: sql, parameters, dryRun: false }, untilAnswered(signal));
  const id = encodeURIComponent(textMember(job, 'jobReference', 'jobId') ?? '');
  const location = textMember(job, 'jobReference', 'location') ?? api.location;
  const where = location === undefined ? '' : `&location=${encodeURIComponent(location)}`;
  let isRunning = true;
  try {
    signal.throwIfAborted();
    let pageToken: string | undefined;
    for (let batches = 0; ; ) {
      const after = pageToken === undefined ? '' : `&pageToken=${encodeURIComponent(pageToken)}`;
      const query = `timeoutMs=${WAIT_MS}&maxResults=${PAGE_ROWS}&formatOptions.useInt64Timestamp=true${where}${after}`;
      const body = await call(api, 'GET', `/queries/${id}?${query}`, signal);
      if (memberOf(body, 'jobComplete') !== true) continue;
      isRunning = false;
      const fields = listMember(body, 'schema', 'fields');
      if (fields.length === 0) return;
      const page = listMember(body, 'rows');
      if (page.length > 0 || batches === 0)
        yield* inBatches(fields.map(bigqueryColumn), page, (row) => bigqueryValues(row, fields));
      batches++;
      pageToken = textMember(body, 'pageToken');
      if (pageToken === undefined || pageToken === '') return;
    }
  } finally {
    if (isRunning) await cancel(api, `/jobs/${id}/cancel?${where.slice(1)}`);
  }
}

async function cancel(api: Api, path: string): Promise<void> {
  await call(api, 'POST', path, AbortSignal.timeout(1000)).catch(() => {}); // the job ends by itself later
}

interface Job {
  readonly query: string;
  readonly parameters: readonly Parameter[];
  readonly dryRun: boolean;
}

async function insertJob(
  api: Api,
  { query, parameters, dryRun }: Job,
  signal: AbortSignal,
): Promise<unknown> {
  const { project, dataset, location } = api;
  const answer = await call(api, 'POST', '/jobs', signal, {
    jobReference: {
      projectId: project,
      jobId: `troupe_${randomUUID()}`,
      ...(location !== undefined && { location }),
    },
    configuration: {
      dryRun,
      query: {
        query,
        useLegacySql: false,
        defaultDataset: { projectId: project, datasetId: dataset },
        ...(parameters.length > 0 && {
          parameterMode: 'POSITIONAL',
          queryParameters: parameters.map(bigqueryParameter),
        }),
      },
    },
  });
  const failed = memberOf(memberOf(answer, 'status'), 'errorResult');
  if (failed !== undefined)
    throw new RemoteError(textMember(failed, 'reason') ?? '', textMember(failed, 'message') ?? '');
  return answer;
}

async function call(
  { agent, origin, project, access }: Api,
  method: 'GET' | 'POST',
  path: string,
  signal: AbortSignal,
  request?: object,
): Promise<unknown> {
  const { status, body } = await callHttp(agent, {
    method,
    url: new URL(`/bigquery/v2/projects/${encodeURIComponent(project)}${path}`, origin),
    headers: {
      authorization: `Bearer ${await access.current(signal)}`,
      'accept-encoding': 'gzip',
      'user-agent': 'troupe/1 (gzip)',
      ...(request !== undefined && { 'content-type': 'application/json' }),
    },
    signal,
    ...(request !== undefined && { body: JSON.stringify(request) }),
  });
  if (status === 200) return body;
  const message = textMember(body, 'error', 'message');
  if (status !== 400 || message === undefined) throw new DatasourceFailure(categoryOfStatus(status));
  throw new RemoteError(textMember(listMember(body, 'error', 'errors')[0], 'reason') ?? '', message);
}
