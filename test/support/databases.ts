/**
 * The database servers that tests use, where they are unless a setting says otherwise. Where one does not answer its
 * tests are skipped, with the reason; under `CI=true` they fail instead.
 */
import { connect } from 'node:net';

export interface DatabaseServer {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** Why tests of it cannot run here; `false` when they can. For the option `skip` of a test. */
  readonly skip: string | false;
}

/** From `TROUPE_TEST_POSTGRES`, a URL. */
export const postgresServer = await find(
  'PostgreSQL',
  process.env.TROUPE_TEST_POSTGRES,
  'postgresql://root@127.0.0.1:5432/test',
);

/** From `TROUPE_TEST_MARIADB`, a URL. */
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
