/** Sessions with servers that speak the protocol of PostgreSQL. */
import { Client, escapeIdentifier } from 'pg';
import type { EgressRoute } from '../../egress/egress-route.ts';
import { type TlsOptions, tlsAttempts, withTls } from '../../egress/tls-mode.ts';
import { DatasourceFailure } from '../../failure.ts';
import type { Session } from '../connector.ts';
import { lacksTls } from './errors.ts';
import { rowsOf } from './query.ts';
import { PostgresTap } from './tap.ts';
import type { PostgresAddress } from './url.ts';
import { PARSERS } from './values.ts';

export interface PostgresOptions extends PostgresAddress {
  readonly route: EgressRoute;
  /** Where names without a schema are looked for; it has to exist. */
  readonly schema: string;
  readonly ca?: string;
}

export async function openPostgres(options: PostgresOptions): Promise<Session> {
  const { route, tls, ca, schema } = options;
  const { client, tap } = await withTls(
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
    query: (sql, parameters, query) =>
      rowsOf({ client, tap, cancel: () => requestCancel(client, route) }, sql, parameters, query),
    close: () => client.end(),
  };
}

interface Connected {
  readonly client: Client;
  readonly tap: PostgresTap;
}

async function connected(options: PostgresOptions, tls: TlsOptions | false): Promise<Connected> {
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
  const tap = new PostgresTap(client);
  await client.connect();
  return { client, tap };
}

/** Asks the server, on a connection of its own, to end what the client's connection is doing. */
function requestCancel(client: Client, route: EgressRoute): void {
  const [pid, secret]: unknown[] = [Reflect.get(client, 'processID'), Reflect.get(client, 'secretKey')];
  if (typeof pid !== 'number' || typeof secret !== 'number') return;
  const request = Buffer.alloc(16);
  request.writeInt32BE(16, 0);
  request.writeInt32BE(80_877_102, 4);
  request.writeInt32BE(pid, 8);
  request.writeInt32BE(secret, 12);
  route.connect().end(request);
}
