/** Sessions with servers that speak the protocol of PostgreSQL. */
import type { CustomTypesConfig, FieldDef } from 'pg';
import { Client, escapeIdentifier } from 'pg';
import Cursor from 'pg-cursor';
import type { Session } from '../connector.ts';
import { DatasourceFailure } from '../failure.ts';
import type { Route } from '../route.ts';
import type { Cell, Column, ColumnType, Parameter, QueryOptions, RowBatch } from '../rows.ts';
import { integerCell } from '../rows.ts';
import { type TlsOptions, tlsAttempts, withTls } from '../tls-mode.ts';
import { lacksTls } from './postgres-errors.ts';
import type { PostgresAddress } from './postgres-url.ts';

export interface PostgresOptions extends PostgresAddress {
  readonly route: Route;
  /** Where names without a schema are looked for; it has to exist. */
  readonly schema: string;
  readonly ca?: string;
}

export async function openPostgres(options: PostgresOptions): Promise<Session> {
  const { route, tls, ca, schema } = options;
  const client = await withTls(
    tlsAttempts(tls, route, ca),
    (attempt) => connected(options, attempt),
    lacksTls,
  );
  await client.query(`SET search_path TO ${escapeIdentifier(schema)}, public; SET datestyle TO ISO`);
  return {
    async probe() {
      const { rowCount } = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]);
      if (rowCount === 0) throw new DatasourceFailure('database_missing');
    },
    query: (sql, parameters, query) => rowsOf(client, route, sql, parameters, query),
    close: () => client.end(),
  };
}

async function connected(options: PostgresOptions, tls: TlsOptions | false): Promise<Client> {
  const { route, user, password, database, directTls, requireChannelBinding } = options;
  const socket = route.connect();
  // The driver would dial the host itself; it is being dialled already.
  Object.defineProperty(socket, 'connect', { value: () => socket });
  const client = new Client({
    host: route.host,
    port: route.port,
    user,
    database,
    // A function: for an empty text the driver would look into its environment and into files.
    password: () => password,
    ssl: tls,
    stream: () => socket,
    types: PARSERS,
    application_name: 'troupe',
    enableChannelBinding: requireChannelBinding,
    ...(directTls && tls !== false && { sslnegotiation: 'direct' as const }),
  });
  client.on('error', () => {}); // what is running hears of it too
  await client.connect();
  return client;
}

const FIRST_ROWS = 256;
const MOST_ROWS = 16_384;
const BATCH_BYTES = 1_048_576;

async function* rowsOf(
  client: Client,
  route: Route,
  sql: string,
  parameters: readonly Parameter[],
  { signal, readOnly, maxRows = Number.POSITIVE_INFINITY }: QueryOptions,
): AsyncGenerator<RowBatch> {
  if (readOnly) await client.query('BEGIN READ ONLY');
  const cursor = new Cursor<Cell[]>(sql, parameters.map(parameterFor), { rowMode: 'array', types: PARSERS });
  const cancel = () => requestCancel(client, route);
  signal.addEventListener('abort', cancel, { once: true });
  try {
    signal.throwIfAborted();
    client.query(cursor);
    let columns: readonly Column[] | undefined;
    let left = maxRows;
    let size = FIRST_ROWS;
    for (;;) {
      const before = route.receivedBytes();
      const asked = Math.max(1, Math.min(size, left));
      const { rows, fields } = await readBatch(cursor, asked);
      columns ??= fields.map(columnOf);
      if (columns.length > 0) yield { columns, rows };
      left -= rows.length;
      if (rows.length < asked || left <= 0) return;
      const rowBytes = (route.receivedBytes() - before) / rows.length;
      size = Math.max(1, Math.min(MOST_ROWS, size * 4, Math.floor(BATCH_BYTES / Math.max(1, rowBytes))));
    }
  } finally {
    signal.removeEventListener('abort', cancel);
    await cursor.close();
    if (readOnly) await client.query('ROLLBACK');
  }
}

function readBatch(cursor: Cursor<Cell[]>, size: number) {
  return new Promise<{ rows: Cell[][]; fields: readonly FieldDef[] }>((done, fail) => {
    cursor.read(size, (error, rows, result) => {
      // Not `null` but `undefined` by its types, and both in truth.
      if (error) fail(error);
      else done({ rows, fields: result?.fields ?? [] });
    });
  });
}

/** Asks the server, on a connection of its own, to end what the client's connection is doing. */
function requestCancel(client: Client, route: Route): void {
  const [pid, secret]: unknown[] = [Reflect.get(client, 'processID'), Reflect.get(client, 'secretKey')];
  if (typeof pid !== 'number' || typeof secret !== 'number') return;
  const request = Buffer.alloc(16);
  request.writeInt32BE(16, 0);
  request.writeInt32BE(80_877_102, 4);
  request.writeInt32BE(pid, 8);
  request.writeInt32BE(secret, 12);
  route.connect().end(request);
}

function parameterFor(parameter: Parameter): unknown {
  return parameter instanceof Uint8Array ? Buffer.from(parameter) : parameter;
}

type Parser = (text: string) => Cell;

const asText: Parser = (text) => text;
const asInteger: Parser = (text) => integerCell(text);
const asBytes: Parser = (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex'));

/** By object id of the type, which is fixed for built-in types. */
const TYPES = new Map<number, readonly [ColumnType, Parser]>([
  [16, ['boolean', (text) => text === 't']],
  [17, ['bytes', asBytes]],
  [20, ['integer', asInteger]],
  [21, ['integer', Number]],
  [23, ['integer', Number]],
  [26, ['integer', Number]],
  [700, ['float', Number]],
  [701, ['float', Number]],
  [1700, ['decimal', asText]],
  [18, ['text', asText]],
  [19, ['text', asText]],
  [25, ['text', asText]],
  [1042, ['text', asText]],
  [1043, ['text', asText]],
  [1082, ['date', asText]],
  [1083, ['time', asText]],
  [1114, ['timestamp', asText]],
  [1184, ['timestamptz', asText]],
  [1186, ['interval', asText]],
  [2950, ['uuid', asText]],
  [114, ['json', asText]],
  [3802, ['json', asText]],
]);

const PARSERS: CustomTypesConfig = { getTypeParser: (id: number) => TYPES.get(id)?.[1] ?? asText };

function columnOf({ name, dataTypeID }: FieldDef): Column {
  return { name, type: TYPES.get(dataTypeID)?.[0] ?? 'other' };
}
