import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { createSecureContext, TLSSocket } from 'node:tls';
import { createEgress } from '#src/datasource/egress/egress.ts';
import { type TlsMode, tlsAttempts } from '#src/datasource/egress/tls-mode.ts';
import { DATASOURCE_FAILURES } from '#src/datasource/failure.ts';
import { TEST_CERTIFICATE, TEST_KEY } from '#test/support/stand-ins/test-certificate.ts';
import { listening, type Owner } from '../listening.ts';
import { OWN_PORT, probeFixture } from '../probe-fixture.ts';

/** Returns the attempts, each as one word. */
function attempts(mode: TlsMode | undefined, scope: 'loopback' | 'private' | 'public', ca?: string): string {
  return tlsAttempts(mode, { scope }, ca)
    .map((one) => {
      if (one === false) return 'plain';
      if (!one.rejectUnauthorized) return 'unchecked';
      return `${one.checkServerIdentity ? 'chain' : 'full'}${one.ca === undefined ? '' : ' own'}`;
    })
    .join(', ');
}

test("TLS modes have PostgreSQL's meaning, and the default depends on the scope of the server's address", () => {
  const modes = [undefined, 'disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
  const table = modes.map((mode) => [
    mode ?? 'nothing',
    attempts(mode, 'loopback'),
    attempts(mode, 'private'),
    attempts(mode, 'public'),
    attempts(mode, 'private', TEST_CERTIFICATE),
  ]);
  assert.deepEqual(table, [
    ['nothing', 'unchecked, plain', 'unchecked, plain', 'full', 'full own'],
    ['disable', 'plain', 'plain', 'plain', 'plain'],
    ['prefer', 'unchecked, plain', 'unchecked, plain', 'unchecked, plain', 'unchecked, plain'],
    ['require', 'unchecked', 'unchecked', 'unchecked', 'unchecked'],
    ['verify-ca', 'chain', 'chain', 'chain', 'chain own'],
    ['verify-full', 'full', 'full', 'full', 'full own'],
  ]);
});

/** A server that accepts TLS as PostgreSQL does and then rejects the password: that error shows that TLS was accepted. */
function tlsPostgres(owner: Owner): Promise<number> {
  const secureContext = createSecureContext({ cert: TEST_CERTIFICATE, key: TEST_KEY });
  const refusal = Buffer.from('SFATAL\0VFATAL\0C28P01\0Mno\0\0');
  const length = Buffer.alloc(4);
  length.writeInt32BE(refusal.length + 4);
  const server = createServer((socket: Socket) => {
    socket.once('data', () => {
      socket.write('S');
      const secure = new TLSSocket(socket, { isServer: true, secureContext });
      secure.on('error', () => {}); // the client rejected the certificate
      secure.once('data', () => secure.end(Buffer.concat([Buffer.from('E'), length, refusal])));
    });
  });
  return listening(owner, server);
}

const REACHED = DATASOURCE_FAILURES.authentication;
const CASES: readonly (readonly [host: string, mode: TlsMode, ca: boolean, message: string])[] = [
  ['localhost', 'require', false, REACHED],
  ['localhost', 'verify-ca', false, DATASOURCE_FAILURES.tls],
  ['localhost', 'verify-full', false, DATASOURCE_FAILURES.tls],
  ['localhost', 'verify-ca', true, REACHED],
  ['localhost', 'verify-full', true, REACHED],
  ['127.0.0.1', 'verify-full', true, REACHED],
  ['db.example', 'verify-full', true, REACHED],
  ['other.example', 'verify-ca', true, REACHED],
  ['other.example', 'verify-full', true, DATASOURCE_FAILURES.tls],
  ['other.example', 'require', false, REACHED],
];

for (const [host, tls, ca, message] of CASES) {
  test(`${tls} of ${host}, ${ca ? 'with' : 'without'} its CA, results in: ${message}`, async (t) => {
    const port = await tlsPostgres(t);
    const egress = createEgress({
      listenHost: '127.0.0.1',
      ownPorts: () => [OWN_PORT],
      allow: undefined,
      resolve: async () => ['127.0.0.1'],
    });
    const result = await probeFixture(t, { egress }).probe({
      kind: 'redshift',
      host,
      port,
      database: 'd',
      user: 'u',
      password: 'p',
      schema: 's',
      tls,
      ...(ca && { ca_certificate: TEST_CERTIFICATE }),
    });
    assert.deepEqual(result, { ok: false, message });
  });
}
