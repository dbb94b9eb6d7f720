import { type ClickHouseClient, ClickHouseError, ClickHouseLogLevel, createClient } from '@clickhouse/client';
import { Type } from 'typebox';
import { defineConnector, type Session } from '../connector.ts';
import type { FailureCategory } from '../failure.ts';
import { agentFor } from '../http-route.ts';
import type { Parameter, QueryOptions, RowBatch } from '../rows.ts';
import { type Cell, type Column, type ColumnType, integerCell } from '../rows.ts';
import { isReading } from '../statement-start.ts';
import { CaCertificate } from '../tls-mode.ts';
import { checkCertificate, checkUrl, originOf, targetOf, tlsOf } from './http-address.ts';
import { HttpUrl, nameMember, Password, User } from './members.ts';

export const clickhouse = defineConnector({
  kind: 'clickhouse',
  title: 'ClickHouse',
  embedded: false,
  schema: Type.Object(
    {
      kind: Type.Literal('clickhouse'),
      url: HttpUrl,
      database: nameMember('Database', 'Database that is used where a statement names none.', 'default'),
      user: User,
      password: Password,
      ca_certificate: Type.Optional(CaCertificate),
    },
    {
      title: 'ClickHouse',
      description: 'A ClickHouse server or ClickHouse Cloud, over its HTTP interface.',
      additionalProperties: false,
      examples: [
        {
          kind: 'clickhouse',
          url: 'https://clickhouse.example.com:8443',
          database: 'default',
          user: 'analyst',
          password: 'secret',
        },
      ],
    },
  ),
  check: ({ url, ca_certificate }) => [...checkUrl(url), ...checkCertificate(ca_certificate)],
  target: ({ url }) => targetOf(url),
  async open({ url, database, user, password, ca_certificate }, { reach }) {
    const route = await reach(targetOf(url));
    const tls = tlsOf(url, ca_certificate);
    const agent = agentFor(route, tls);
    return sessionOf(
      createClient({
        url: originOf(route, tls),
        http_agent: agent,
        username: user,
        password,
        database,
        application: 'troupe',
        // Its log goes to the console, with hosts and requests in it.
        log: { level: ClickHouseLogLevel.OFF },
        request_timeout: MAX_TIMER_MS,
        clickhouse_settings: {
          output_format_json_quote_64bit_integers: 1,
          output_format_json_quote_decimals: 1,
          output_format_json_quote_denormals: 1,
          cancel_http_readonly_queries_on_client_close: 1,
        },
      }),
    );
  },
  placeholder: (position, parameter) => `{p${position}:${typeOf(parameter)}}`,
  classify(error): FailureCategory | undefined {
    if (error instanceof ClickHouseError) return CATEGORIES[error.code];
    return error instanceof Error && error.message.startsWith('Timeout') ? 'timeout' : undefined;
  },
  explain: (error) => (error instanceof ClickHouseError ? error.message : undefined),
});

const MAX_TIMER_MS = 2_147_483_647;

/** By the number of the server's error. */
const CATEGORIES: Readonly<Record<string, FailureCategory>> = {
  '192': 'authentication', // unknown user
  '193': 'authentication', // wrong password
  '194': 'authentication', // password needed
  '516': 'authentication',
  '81': 'database_missing',
  '394': 'cancelled',
};

function sessionOf(client: ClickHouseClient): Session {
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

async function* rowsOf(
  client: ClickHouseClient,
  sql: string,
  parameters: readonly Parameter[],
  { signal, readOnly }: QueryOptions,
): AsyncGenerator<RowBatch> {
  const request = {
    query: sql.replace(/;\s*$/, ''),
    abort_signal: signal,
    query_params: Object.fromEntries(parameters.map((value, at) => [`p${at + 1}`, value])),
    // 2: settings may change, this one may not.
    ...(readOnly && { clickhouse_settings: { readonly: '2' } }),
  };
  if (!readOnly && !isReading(sql)) {
    await client.command(request);
    return;
  }
  const result = await client.query({ ...request, format: 'JSONCompactEachRowWithNamesAndTypes' });
  let names: readonly string[] | undefined;
  let columns: readonly Column[] | undefined;
  let batches = 0;
  for await (const lines of result.stream<unknown[]>()) {
    const rows: Cell[][] = [];
    for (const line of lines) {
      const values: unknown[] = line.json();
      if (names === undefined) names = values.map(String);
      else if (columns === undefined) columns = columnsOf(names, values);
      else rows.push(cellsOf(values, columns));
    }
    if (columns === undefined || (rows.length === 0 && batches > 0)) continue;
    yield { columns, rows };
    batches++;
  }
}

function columnsOf(names: readonly string[], types: readonly unknown[]): Column[] {
  return names.map((name, at) => ({ name, type: columnType(String(types[at])) }));
}

function cellsOf(values: readonly unknown[], columns: readonly Column[]): Cell[] {
  return values.map((value, at) => cellOf(value, columns[at]?.type ?? 'other'));
}

function columnType(native: string): ColumnType {
  const name = native.replace(/^(?:(?:LowCardinality|Nullable)\()+/, '').replace(/\)+$/, '');
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

function cellOf(value: unknown, type: ColumnType): Cell {
  if (value === null || value === undefined) return null;
  if (type === 'integer' && (typeof value === 'string' || typeof value === 'number'))
    return integerCell(value);
  // Not-a-number and the infinities come as text.
  if (type === 'float') return Number(String(value).replace(/^(-?)inf$/, '$1Infinity'));
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return type === 'decimal' ? String(value) : value;
  return JSON.stringify(value);
}

function typeOf(parameter: Parameter): string {
  if (parameter === null) return 'Nullable(String)';
  if (typeof parameter === 'boolean') return 'Bool';
  if (typeof parameter === 'bigint') return 'Int128';
  if (typeof parameter === 'number') return Number.isInteger(parameter) ? 'Int64' : 'Float64';
  return 'String';
}
