/**
 * The database servers that tests use, at their usual addresses unless a setting names others. When a server does not
 * answer, its tests are skipped with the reason; with `CI=true` they fail.
 */
import { connect } from 'node:net';

/** A database server, and whether tests can use it. */
export interface DatabaseServer {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** Why tests cannot run here; `false` when they can. It is the value of a test's option `skip`. */
  readonly skip: string | false;
}

/** The server of `TROUPE_TEST_POSTGRES`, a URL. */
export const postgresServer = await find(
  'PostgreSQL',
  process.env.TROUPE_TEST_POSTGRES,
  'postgresql://root@127.0.0.1:5432/test',
);

/** The server of `TROUPE_TEST_MARIADB`, a URL. */
export const mariadbServer = await find(
  'MariaDB',
  process.env.TROUPE_TEST_MARIADB,
  'mariadb://root@127.0.0.1:3306/test',
);

async function find(name: string, setting: string | undefined, usual: string): Promise<DatabaseServer> {
  const { hostname: host, port, username, password, pathname } = new URL(setting ?? usual);
  const answers = await isListening(host, Number(port));
  const isLenient = process.env.CI !== 'true';
  return {
    host,
    port: Number(port),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: pathname.slice(1),
    skip: !answers && isLenient && `no ${name} at ${host}:${port}`,
  };
}

function isListening(host: string, port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, host);
    socket.setTimeout(2000, () => socket.destroy());
    socket.once('connect', () => {
      done(true);
      socket.destroy();
    });
    socket.once('error', () => done(false));
    socket.once('close', () => done(false));
  });
}
