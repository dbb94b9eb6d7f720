/** Connections to the database servers of `#test/support/databases.ts`, as requests contain them. */
import { mariadbServer, postgresServer } from '#test/support/stand-ins/databases.ts';

/** The differences from a connection that works; `query` follows the database, as in `?sslmode=disable`. */
export interface PostgresParts {
  readonly host?: string;
  readonly port?: number;
  readonly database?: string;
  readonly user?: string;
  readonly query?: string;
  readonly schema?: string;
}

export function postgresConnection({
  host = postgresServer.host,
  port = postgresServer.port,
  database = postgresServer.database,
  user = postgresServer.user,
  query = '',
  schema = 'public',
}: PostgresParts = {}) {
  const credentials = `${user}:${encodeURIComponent(postgresServer.password || 'unused')}`;
  const connection_string = `postgresql://${credentials}@${host}:${port}/${database}${query}`;
  return { kind: 'postgres', connection_string, schema };
}

/** Returns a connection of the kind `redshift`, which speaks the same protocol, to the PostgreSQL server. */
export function redshiftConnection(overrides: object = {}) {
  const { host, port, database, user, password } = postgresServer;
  return { kind: 'redshift', host, port, database, user, password, schema: 'public', ...overrides };
}

export function mariadbConnection(overrides: object = {}) {
  const { host, port, database, user, password } = mariadbServer;
  return { kind: 'mariadb', host, port, database, user, password, ...overrides };
}
