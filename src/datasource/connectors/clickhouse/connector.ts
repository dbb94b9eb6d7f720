import { codeOf, type FailureCategory } from '../../failure.ts';
import { CLICKHOUSE_SYNTAX } from '../../query/placeholders.ts';
import type { Parameter } from '../../rows.ts';
import { ROW_AND_BATCH_BYTES } from '../../rows.ts';
import { defineConnector } from '../connector.ts';
import { checkCertificate, checkUrl, originOf, targetOf, tlsOf } from '../http/address.ts';
import { agentFor } from '../http/client.ts';
import { ClickhouseSchema } from './connection.ts';

/** The connector of ClickHouse. */
export const clickhouse = defineConnector({
  kind: 'clickhouse',
  title: 'ClickHouse',
  embedded: false,
  schema: ClickhouseSchema,
  check: ({ url, ca_certificate }) => [...checkUrl(url), ...checkCertificate(ca_certificate)],
  target: ({ url }) => targetOf(url),
  async open(connection, { connectTo }) {
    const route = await connectTo(targetOf(connection.url));
    const tls = tlsOf(connection.url, connection.ca_certificate);
    const { openClickhouse } = await import('./link.ts');
    return openClickhouse({ ...connection, agent: agentFor(route, tls), origin: originOf(route, tls) });
  },
  maxBytesBetweenBatches: ROW_AND_BATCH_BYTES,
  syntax: CLICKHOUSE_SYNTAX,
  placeholder(position, parameter) {
    const placed = `{p${position}:${typeOf(parameter)}}`;
    return parameter instanceof Uint8Array ? `unhex(${placed})` : placed;
  },
  classify(error): FailureCategory | undefined {
    if (isServerError(error)) return CATEGORIES[codeOf(error) ?? ''];
    return error instanceof Error && error.message.startsWith('Timeout') ? 'timeout' : undefined;
  },
  explain: (error) => (isServerError(error) ? error.message : undefined),
});

/** Categories by the number of the server's error. */
const CATEGORIES: Readonly<Record<string, FailureCategory>> = {
  '192': 'authentication', // unknown user
  '193': 'authentication', // wrong password
  '194': 'authentication', // password needed
  '516': 'authentication',
  '81': 'database_missing',
  '394': 'cancelled',
};

/** Recognises errors of the server by their number and name, so that the driver need not be loaded. */
function isServerError(error: unknown): error is Error {
  return error instanceof Error && 'type' in error && /^\d+$/.test(codeOf(error) ?? '');
}

function typeOf(parameter: Parameter): string {
  if (parameter === null) return 'Nullable(String)';
  if (typeof parameter === 'boolean') return 'Bool';
  if (typeof parameter === 'bigint') return BigInt.asIntN(64, parameter) === parameter ? 'Int64' : 'Int128';
  if (typeof parameter === 'number') return 'Float64';
  return 'String';
}
