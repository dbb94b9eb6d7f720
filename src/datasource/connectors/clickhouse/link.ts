/** Links to ClickHouse over its HTTP interface, through the vendor's driver. */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import {
  type ClickHouseClient,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
  drainStream,
  parseError,
  ResultSet,
} from '@clickhouse/client';
import { isReading } from '../../query/statements.ts';
import {
  type ColumnType,
  integerCell,
  type Parameter,
  type QueryOptions,
  type ResultColumn,
  type RowBatch,
  type RowValue,
} from '../../rows.ts';
import type { Reached } from '../http/client.ts';
import type { DatabaseLink } from '../link.ts';
import { AS_IT_IS, endingWithNewline, errorIn } from './answer.ts';
import type { ClickhouseConnection } from './connection.ts';

/** Returns a link to a ClickHouse server. Nothing is sent until it is used. */
export async function openClickhouse({
  agent,
  origin,
  database,
  user,
  password,
}: Reached<ClickhouseConnection>): Promise<DatabaseLink> {
  return linkOf(
    createClient({
      url: origin,
      http_agent: agent,
      username: user,
      password,
      database,
      application: 'troupe',
      // Without this the driver would write hosts and requests to the console.
      log: { level: ClickHouseLogLevel.OFF },
      request_timeout: MAX_TIMER_MS,
      clickhouse_settings: PINNED,
    }),
  );
}

/**
 * The settings that change the form of values. A server or the profile of a user may have other defaults for them. A user who may
 * change no setting may still send one with the value that it already has.
 */
const PINNED: ClickHouseSettings = {
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_decimals: 1,
  output_format_json_quote_denormals: 1,
  output_format_json_quote_64bit_floats: 0,
  output_format_json_named_tuples_as_objects: 1,
  output_format_decimal_trailing_zeros: 0,
  date_time_output_format: 'simple',
  cancel_http_readonly_queries_on_client_close: 1,
};
/** Otherwise an insert may succeed before the server has written it. */
const KEEPS_WRITES: ClickHouseSettings = { wait_for_async_insert: 1 };

const MAX_TIMER_MS = 2_147_483_647;

function linkOf(client: ClickHouseClient): DatabaseLink {
  const query = (sql: string, parameters: readonly Parameter[], options: QueryOptions) =>
    rowsOf(client, sql, parameters, options);
  return {
    async probe(signal) {
      for await (const _ of query('SELECT 1', [], { signal, readOnly: true }));
    },
    query,
    close: () => client.close(),
  };
}

const FORMAT = 'JSONCompactEachRowWithNamesAndTypes';

async function* rowsOf(
  client: ClickHouseClient,
  sql: string,
  parameters: readonly Parameter[],
  { signal, readOnly }: QueryOptions,
): AsyncGenerator<RowBatch> {
  const id = randomUUID();
  const hasRows = readOnly || isReading(sql);
  let isRunning = true;
  try {
    const answer = await client.exec({
      query: sql.replace(/;\s*$/, '') + (hasRows ? `\nFORMAT ${FORMAT}` : ''),
      query_id: id,
      abort_signal: signal,
      query_params: Object.fromEntries(parameters.map((value, at) => [`p${at + 1}`, sent(value)])),
      // 2 forbids writing but allows other settings to be set. `readonly` itself can then no longer be changed.
      clickhouse_settings: readOnly ? { readonly: '2' } : hasRows ? {} : KEEPS_WRITES,
      ...AS_IT_IS,
    });
    const error = await errorIn(answer);
    if (error !== undefined) {
      isRunning = false;
      throw error;
    }
    if (hasRows) {
      const stream = Readable.from(endingWithNewline(answer.stream));
      yield* batchesOf(new ResultSet(stream, FORMAT, id, () => {}, answer.response_headers));
    } else await drainStream(answer.stream);
    isRunning = false;
  } finally {
    if (isRunning) await kill(client, id);
  }
}

/**
 * Returns the value in the form that the driver takes. Bytes are sent as hexadecimal digits, because a URL cannot
 * hold all of them.
 */
function sent(parameter: Parameter): Exclude<Parameter, Uint8Array> {
  return parameter instanceof Uint8Array ? Buffer.from(parameter).toString('hex') : parameter;
}

/**
 * The server continues a statement whose client has disconnected, unless the statement's user may
 * only read.
 */
async function kill(client: ClickHouseClient, id: string): Promise<void> {
  const abort_signal = AbortSignal.timeout(1000);
  await client.command({ query: `KILL QUERY WHERE query_id = '${id}'`, abort_signal }).catch(() => {}); // the statement ends later by itself
}

async function* batchesOf(result: ResultSet<typeof FORMAT>): AsyncGenerator<RowBatch> {
  let names: readonly string[] | undefined;
  let columns: readonly ResultColumn[] | undefined;
  let batches = 0;
  for await (const lines of result.stream<unknown[]>()) {
    const rows: RowValue[][] = [];
    for (const line of lines) {
      const values = valuesOf(line);
      if (names === undefined) names = values.map(String);
      else if (columns === undefined) columns = columnsOf(names, values);
      else rows.push(cellsOf(values, columns));
    }
    if (columns === undefined || (rows.length === 0 && batches > 0)) continue;
    yield { columns, rows };
    batches++;
  }
}

/** Returns the values of a line. Throws the server's error, which older servers write in the place of a row. */
function valuesOf(line: { readonly text: string; json(): unknown[] }): readonly unknown[] {
  try {
    return line.json();
  } catch {
    throw parseError(line.text);
  }
}

function columnsOf(names: readonly string[], types: readonly unknown[]): ResultColumn[] {
  return names.map((name, at) => ({ name, type: columnType(String(types[at])) }));
}

function cellsOf(values: readonly unknown[], columns: readonly ResultColumn[]): RowValue[] {
  return values.map((value, at) => cellOf(value, columns[at]?.type ?? 'other'));
}

function columnType(native: string): ColumnType {
  const [name = ''] = /^\w*/.exec(native.replace(/^(?:(?:LowCardinality|Nullable)\()+/, '')) ?? [];
  if (name === 'Bool') return 'boolean';
  if (/^U?Int\d+$/.test(name)) return 'integer';
  if (/^B?Float\d+$/.test(name)) return 'float';
  if (name.startsWith('Decimal')) return 'decimal';
  if (name.startsWith('DateTime')) return 'timestamp';
  if (name.startsWith('Date')) return 'date';
  if (name === 'UUID') return 'uuid';
  if (/^(String|FixedString|Enum)/.test(name)) return 'text';
  return /^(Array|Map|Tuple|Nested|JSON|Object|Variant|Dynamic)/.test(name) ? 'json' : 'other';
}

function cellOf(value: unknown, type: ColumnType): RowValue {
  if (value === null || value === undefined) return null;
  if (type === 'integer' && (typeof value === 'string' || typeof value === 'number'))
    return integerCell(value);
  // NaN and the infinities arrive as text.
  if (type === 'float') return Number(String(value).replace(/^(-?)inf$/, '$1Infinity'));
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return type === 'decimal' ? String(value) : value;
  return JSON.stringify(value);
}
