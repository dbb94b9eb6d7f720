/** Links to servers that speak the PostgreSQL protocol. */
import { Client, escapeIdentifier } from 'pg';
import type { EgressRoute } from '../../egress/egress-route.ts';
import { type TlsOptions, tlsAttempts, withTls } from '../../egress/tls-mode.ts';
import { DatasourceFailure } from '../../failure.ts';
import type { DatabaseLink } from '../link.ts';
import { postgresLacksTls } from './errors.ts';
import { postgresRows } from './query.ts';
import { PostgresTap } from './tap.ts';
import type { PostgresAddress } from './url.ts';
import { PARSERS } from './values.ts';

/** A server, an account on it, and a schema. */
export interface PostgresOptions extends PostgresAddress {
  readonly route: EgressRoute;
  /** Where names without a schema are looked up. It must exist. */
  readonly schema: string;
  readonly ca?: string;
  /** Whether the server has DISCARD. Redshift does not. */
  readonly canDiscard: boolean;
}

/**
 * The settings that change the form of values. A server, a database or a role may have other defaults, which the vendor's drivers
 * understand and the parsers here do not. Settings that change values themselves, such as the time zone, stay as they are.
 */
const PINNED = { datestyle: 'ISO' };
const PINNED_POSTGRES = {
  bytea_output: 'hex',
  extra_float_digits: '3', // every digit, also before PostgreSQL 12
  intervalstyle: 'postgres',
  standard_conforming_strings: 'on', // the search for placeholders reads string literals like this
};
/** Redshift has only this setting of these, and allows at most 2 for it. */
const PINNED_REDSHIFT = { extra_float_digits: '2' };

/** Opens a link. Rejects with errors of the driver and of sockets. */
export async function openPostgres(options: PostgresOptions): Promise<DatabaseLink> {
  const { route, tls, ca, schema, canDiscard } = options;
  const { client, tap } = await withTls(
    tlsAttempts(tls, route, ca),
    (attempt) => connected(options, attempt),
    postgresLacksTls,
  );
  const pinned = { ...PINNED, ...(canDiscard ? PINNED_POSTGRES : PINNED_REDSHIFT) };
  const settings = Object.entries(pinned).map(([name, value]) => `SET ${name} TO ${value}`);
  const prepare = () =>
    client.query([`SET search_path TO ${escapeIdentifier(schema)}, public`, ...settings].join('; '));
  await prepare();
  return {
    lost: tap.gone,
    ...(canDiscard
      ? {
          async reset() {
            await client.query('DISCARD ALL'); // sent alone, because it may not be part of a transaction
            await prepare();
          },
        }
      : { isSingleUse: true }),
    async probe() {
      const { rowCount } = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]);
      if (rowCount === 0) throw new DatasourceFailure('database_missing');
    },
    query: (sql, parameters, query) =>
      postgresRows({ client, tap, cancel: () => requestCancel(client, route) }, sql, parameters, query),
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
  // The driver calls `connect`, but the route has already begun to connect this socket.
  Object.defineProperty(socket, 'connect', { value: () => socket });
  const client = new Client({
    host: route.host,
    port: route.port,
    user,
    database,
    // A function, because if the password were an empty text, the driver would look for one in its environment and
    // files.
    password: () => password,
    ssl: tls,
    stream: () => socket,
    types: PARSERS,
    application_name: 'troupe',
    enableChannelBinding: requireChannelBinding,
    ...(directTls && tls !== false && { sslnegotiation: 'direct' as const }),
  });
  client.on('error', () => {}); // the running query gets this error too
  const tap = new PostgresTap(client);
  await client.connect();
  return { client, tap };
}

/** Asks the server, on a separate connection, to cancel the current statement of the client's connection. */
async function requestCancel(client: Client, route: EgressRoute): Promise<void> {
  const [pid, secret]: unknown[] = [Reflect.get(client, 'processID'), Reflect.get(client, 'secretKey')];
  if (typeof pid !== 'number' || typeof secret !== 'number') return;
  const request = Buffer.alloc(16);
  request.writeInt32BE(16, 0);
  request.writeInt32BE(80_877_102, 4);
  request.writeInt32BE(pid, 8);
  request.writeInt32BE(secret, 12);
  route.connect().end(request);
}
