// tier: whole, because it makes random or hostile input
/** Probes of servers that are not databases, or broken ones, with a canary in place of every secret. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { connectorOf, parseConnection } from '#src/datasource/connectors/connection-schema.ts';
import { CONNECTORS } from '#src/datasource/connectors/registry.ts';
import { createEgress } from '#src/datasource/egress/egress.ts';
import { DATASOURCE_FAILURES } from '#src/datasource/failure.ts';
import { probeConnection } from '#src/datasource/probe.ts';
import { TEST_CERTIFICATE } from '#test/support/stand-ins/test-certificate.ts';
import { httpStandIn } from './http-stand-in.ts';
import { listeningWith } from './listening.ts';
import { OWN_PORT, probeFixture } from './probe-fixture.ts';

const CANARY = 'canary-91f3';

/** Returns a connection of every remote kind whose driver comes with the server. */
const remote: Readonly<Record<string, (host: string, port: number, scheme?: string) => object>> = {
  postgres: (host, port) => ({
    connection_string: `postgresql://${CANARY}:${CANARY}@${host}:${port}/${CANARY}`,
    schema: CANARY,
  }),
  redshift: (host, port) => ({
    host,
    port,
    database: CANARY,
    user: CANARY,
    password: CANARY,
    schema: CANARY,
  }),
  mysql: (host, port) => ({ host, port, database: CANARY, user: CANARY, password: CANARY }),
  mariadb: (host, port) => ({ host, port, database: CANARY, user: CANARY, password: CANARY }),
  clickhouse: (host, port, scheme = 'http') => ({
    url: `${scheme}://${host}:${port}`,
    database: CANARY,
    user: CANARY,
    password: CANARY,
  }),
  trino: (host, port, scheme = 'http') => ({
    url: `${scheme}://${host}:${port}`,
    catalog: CANARY,
    schema: CANARY,
    user: CANARY,
  }),
  snowflake: (host, port) => ({
    url: `https://${host}:${port}`,
    account: 'a',
    token: CANARY,
    warehouse: CANARY,
    database: CANARY,
    schema: CANARY,
    user: CANARY,
  }),
  databricks: (host, port) => ({
    host,
    port,
    http_path: '/sql/1.0/warehouses/a',
    token: CANARY,
    catalog: CANARY,
    schema: CANARY,
  }),
};

const kinds = Object.keys(remote);
const connectionTo = (kind: string, host: string, port: number, scheme?: string) => ({
  kind,
  ...remote[kind]?.(host, port, scheme),
});

/** Servers that misbehave, each in a different way. */
const SERVERS: Readonly<Record<string, (socket: Socket) => void>> = {
  'says nothing': () => {},
  'hangs up': (socket) => socket.destroy(),
  'says something else': (socket) => socket.end(`220 ${CANARY} ready\r\n`),
  'sends zeros forever': (socket) => pour(socket, Buffer.alloc(65_536)),
  'sends one message of PostgreSQL forever': (socket) =>
    pour(socket, Buffer.alloc(65_536, 'x'), Buffer.from([0x4e, 0x52, 0x3f, 0xff, 0xff, 0xff])),
  'sends one answer of HTTP forever': (socket) =>
    pour(
      socket,
      Buffer.alloc(65_536, ' '),
      Buffer.from('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n'),
    ),
  'sends one packet of MySQL forever': (socket) =>
    pour(socket, Buffer.alloc(65_536, 'x'), Buffer.from([0xff, 0xff, 0xff, 0])),
  'sends headers of HTTP forever': (socket) =>
    pour(socket, Buffer.from('a: b\r\n'.repeat(1000)), Buffer.from('HTTP/1.1 200 OK\r\n')),
};

function pour(socket: Socket, chunk: Buffer, first?: Buffer): void {
  if (first !== undefined) socket.write(first);
  const more = () => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', more);
  socket.resume();
  more();
}

const words: ReadonlySet<string> = new Set(Object.values(DATASOURCE_FAILURES));

for (const [behaviour, serve] of Object.entries(SERVERS)) {
  test(`probing a server that ${behaviour} ends in time, with one of the fixed messages`, async (t) => {
    const port = await listeningWith(t, serve);
    const { context } = probeFixture(t);
    await Promise.all(
      kinds.map(async (kind) => {
        const connection = parseConnection(connectionTo(kind, '127.0.0.1', port));
        const { ok, message } = await probeConnection(connection, { ...context, deadlineMs: 1000 });
        assert.deepEqual([kind, ok, words.has(message)], [kind, false, true], message);
        if (behaviour === 'says nothing') assert.equal(message, DATASOURCE_FAILURES.timeout, kind);
      }),
    );
  });
}

test('a connection test that is cut off closes its sockets', async (t) => {
  let open = 0;
  const closed: Promise<void>[] = [];
  const port = await listeningWith(t, (socket) => {
    open++;
    socket.resume();
    closed.push(new Promise((done) => socket.once('close', () => done(void open--))));
  });
  const { context } = probeFixture(t);
  for (const kind of kinds) {
    await probeConnection(parseConnection(connectionTo(kind, '127.0.0.1', port)), {
      ...context,
      deadlineMs: 100,
    });
  }
  await Promise.all(closed);
  assert.deepEqual([open, closed.length >= kinds.length], [0, true]);
});

for (const status of [301, 302, 303, 307, 308]) {
  test(`a redirect with ${status} is not followed`, async (t) => {
    let visits = 0;
    const trap = await listeningWith(t, (socket) => {
      visits++;
      socket.destroy();
    });
    const answer = () => ({ status, headers: { location: `http://127.0.0.1:${trap}/` }, body: '' });
    const [plain, secure] = [await httpStandIn(t, answer, false), await httpStandIn(t, answer)];
    const { probe } = probeFixture(t);
    for (const kind of ['clickhouse', 'trino']) {
      assert.equal((await probe(connectionTo(kind, 'localhost', plain.port))).ok, false);
    }
    for (const kind of ['clickhouse', 'trino', 'snowflake', 'databricks']) {
      const connection = {
        ...connectionTo(kind, 'localhost', secure.port, 'https'),
        ca_certificate: TEST_CERTIFICATE,
      };
      assert.equal((await probe(connection)).ok, false);
    }
    assert.equal(visits, 0);
    assert(plain.requests.length >= 2 && secure.requests.length >= 4);
  });
}

const PORTS_SCANNED = [
  ['169.254.169.254', 80],
  ['169.254.169.254', 443],
  ['100.100.100.200', 80],
  ['127.0.0.1', 22],
  ['127.0.0.1', 5432],
  ['localhost', 3306],
  ['[::1]', 6379],
  ['0x7f000001', 5432],
  ['10.0.0.1', 5432],
  ['192.168.0.1', 80],
  ['[fd00::1]', 5432],
  ['0.0.0.0', 5432],
] as const;

test('a port scanner learns nothing: the message for a refused target is the same if the port is open or closed', async (t) => {
  const egress = createEgress({ listenHost: '0.0.0.0', ownPorts: () => [OWN_PORT], allow: undefined });
  const { context } = probeFixture(t, { egress });
  for (const [host, port] of PORTS_SCANNED) {
    for (const kind of kinds) {
      const connection = parseConnection(connectionTo(kind, host, port));
      const { ok, message } = await probeConnection(connection, context);
      assert.deepEqual(
        { host, kind, ok, message },
        { host, kind, ok: false, message: DATASOURCE_FAILURES.not_allowed },
      );
    }
  }
});

test('no result, error or console output of any kind of connection contains a secret', async (t) => {
  const printed: string[] = [];
  for (const method of ['log', 'info', 'warn', 'error', 'debug', 'trace'] as const) {
    t.mock.method(console, method, (...args: unknown[]) => printed.push(inspect(args)));
  }
  const closing = await listeningWith(t, (socket) => socket.destroy());
  const { context } = probeFixture(t);
  const key = `-----BEGIN PRIVATE KEY-----\n${CANARY}\n-----END PRIVATE KEY-----`;
  const url = `https://localhost:${closing}`;
  const connections = [
    ...kinds.flatMap((kind) => [closing, OWN_PORT, 9].map((port) => connectionTo(kind, 'localhost', port))),
    { kind: 'mssql', host: 'localhost', port: closing, database: CANARY, user: CANARY, password: CANARY },
    {
      kind: 'bigquery',
      project: CANARY,
      dataset: CANARY,
      service_account: { client_email: CANARY, private_key: key, token_uri: `${url}/${CANARY}` },
      url,
    },
    ...['duckdb', 'sqlite', 'files'].map((kind) => ({ kind, path: CANARY })),
  ];
  assert.deepEqual(new Set(connections.map(({ kind }) => kind)), new Set(CONNECTORS.map(({ kind }) => kind)));
  for (const connection of connections) {
    const parsed = parseConnection(connection);
    const result = await probeConnection(parsed, { ...context, deadlineMs: 2000 });
    assert.equal(result.ok, false);
    const attempt = async () => {
      const session = await connectorOf(parsed.kind).open(parsed, context, AbortSignal.timeout(2000));
      await session.probe(AbortSignal.timeout(2000));
    };
    const error = await attempt().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    const seen = inspect([result, error, printed], { depth: 20, showHidden: true });
    assert.equal(seen.includes(CANARY), false, seen);
  }
});
