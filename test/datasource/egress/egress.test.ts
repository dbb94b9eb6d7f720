import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { createEgress, type EgressOptions, isLoopbackHost } from '#src/datasource/egress/egress.ts';
import { DatasourceFailure } from '#src/datasource/failure.ts';
import { listeningWith } from '../listening.ts';

const NAMES: Readonly<Record<string, readonly string[]>> = {
  'db.example': ['8.8.8.8'],
  'inside.example': ['10.0.0.5'],
  'mixed.example': ['8.8.8.8', '10.0.0.5'],
  'trap.example': ['8.8.8.8', '169.254.169.254'],
  'zone.example': ['fe80::1%eth0'],
  'local.example': ['127.0.0.1', '::1'],
  'ours.example': ['203.0.113.9'],
};

const OWN_PORT = 8787;

function egressFor(options: Pick<EgressOptions, 'listenHost' | 'allow'>) {
  return createEgress({
    ...options,
    ownPorts: () => [OWN_PORT],
    ownAddresses: () => ['127.0.0.1', '203.0.113.9', 'fe80::2'],
    resolve: async (name) => NAMES[name] ?? [],
  });
}

/** Returns the scope of the route, or the category of the refusal. */
async function outcomeOf(options: Pick<EgressOptions, 'listenHost' | 'allow'>, host: string, port = 5432) {
  try {
    using route = await egressFor(options).admit(host, port, new AbortController().signal);
    return route.scope;
  } catch (error) {
    assert(error instanceof DatasourceFailure);
    return error.category;
  }
}

const HOME = { listenHost: '127.0.0.1', allow: undefined };
const PUBLIC = { listenHost: '0.0.0.0', allow: undefined };
const LISTED = ['10.0.0.0/24', '192.168.1.7', 'inside.example', 'fd00::/8', '::ffff:172.16.0.0/112'];
const HOME_LISTED = { listenHost: 'localhost', allow: LISTED };
const PUBLIC_LISTED = { listenHost: '::', allow: LISTED };

/** For each target the outcome on loopback, on a public address, on loopback with a list, on a public address with a list. */
const TARGETS: Readonly<Record<string, readonly [string, string, string, string]>> = {
  '8.8.8.8': ['public', 'public', 'public', 'public'],
  'db.example': ['public', 'public', 'public', 'public'],
  'DB.EXAMPLE.': ['public', 'public', 'public', 'public'],
  '127.0.0.1': ['loopback', 'not_allowed', 'not_allowed', 'not_allowed'],
  '0x7f000001': ['loopback', 'not_allowed', 'not_allowed', 'not_allowed'],
  '::1': ['loopback', 'not_allowed', 'not_allowed', 'not_allowed'],
  '::ffff:127.0.0.1': ['loopback', 'not_allowed', 'not_allowed', 'not_allowed'],
  'local.example': ['loopback', 'not_allowed', 'not_allowed', 'not_allowed'],
  '203.0.113.9': ['loopback', 'not_allowed', 'not_allowed', 'not_allowed'],
  '10.0.0.5': ['private', 'not_allowed', 'private', 'private'],
  '167772165': ['private', 'not_allowed', 'private', 'private'],
  '10.0.1.5': ['private', 'not_allowed', 'not_allowed', 'not_allowed'],
  '192.168.1.7': ['private', 'not_allowed', 'private', 'private'],
  '192.168.1.8': ['private', 'not_allowed', 'not_allowed', 'not_allowed'],
  '172.16.0.5': ['private', 'not_allowed', 'private', 'private'],
  'fd00::1': ['private', 'not_allowed', 'private', 'private'],
  'fc00::1': ['private', 'not_allowed', 'not_allowed', 'not_allowed'],
  'inside.example': ['private', 'not_allowed', 'private', 'private'],
  'mixed.example': ['public', 'not_allowed', 'public', 'public'],
  'trap.example': ['not_allowed', 'not_allowed', 'not_allowed', 'not_allowed'],
  'zone.example': ['not_allowed', 'not_allowed', 'not_allowed', 'not_allowed'],
  '169.254.169.254': ['not_allowed', 'not_allowed', 'not_allowed', 'not_allowed'],
  '[::ffff:169.254.169.254]': ['not_allowed', 'not_allowed', 'not_allowed', 'not_allowed'],
  '64:ff9b::a00:5': ['not_allowed', 'not_allowed', 'not_allowed', 'not_allowed'],
  'fe80::1%eth0': ['not_allowed', 'not_allowed', 'not_allowed', 'not_allowed'],
  'fe80::2': ['not_allowed', 'not_allowed', 'not_allowed', 'not_allowed'],
  '0.0.0.0': ['not_allowed', 'not_allowed', 'not_allowed', 'not_allowed'],
  '/var/run/postgresql': ['not_allowed', 'not_allowed', 'not_allowed', 'not_allowed'],
  'nobody.example': ['name_not_found', 'name_not_found', 'name_not_found', 'name_not_found'],
};

for (const [target, expected] of Object.entries(TARGETS)) {
  test(`whether ${target} may be reached depends on the server's address and on the allowed ranges`, async () => {
    const settings = [HOME, PUBLIC, HOME_LISTED, PUBLIC_LISTED];
    assert.deepEqual(await Promise.all(settings.map((one) => outcomeOf(one, target))), expected);
  });
}

test('no setting allows a link-local or metadata address', async () => {
  const allow = ['0.0.0.0/0', '::/0', '169.254.169.254', 'trap.example'];
  for (const target of ['169.254.169.254', 'trap.example', 'fd00:ec2::254', '100.100.100.200', '0.0.0.0']) {
    assert.equal(await outcomeOf({ listenHost: '127.0.0.1', allow }, target), 'not_allowed');
  }
});

test('with an empty list no loopback or private address may be reached', async () => {
  const closed = { listenHost: '127.0.0.1', allow: [] };
  assert.deepEqual(
    [
      await outcomeOf(closed, '127.0.0.1'),
      await outcomeOf(closed, '10.0.0.5'),
      await outcomeOf(closed, '8.8.8.8'),
    ],
    ['not_allowed', 'not_allowed', 'public'],
  );
});

test("the server's own port is refused on every address of the machine, even if the address is allowed", async () => {
  const allow = ['127.0.0.1', '203.0.113.9', 'ours.example', '::1'];
  for (const listenHost of ['127.0.0.1', '0.0.0.0']) {
    for (const host of [
      '127.0.0.1',
      '127.9.9.9',
      'localhost',
      '::1',
      '203.0.113.9',
      'ours.example',
      '0x7f.1',
    ]) {
      assert.equal(
        await outcomeOf({ listenHost, allow }, host, OWN_PORT).catch(String),
        host === 'localhost' ? 'name_not_found' : 'not_allowed',
      );
    }
  }
  assert.equal(await outcomeOf(HOME, '127.0.0.1', OWN_PORT + 1), 'loopback');
  assert.equal(await outcomeOf(HOME, '8.8.8.8', OWN_PORT), 'public');
});

test('a host name is resolved once, and its route keeps the resolved addresses', async (t) => {
  const port = await listeningWith(t, (socket) => socket.end('here'));
  const answers = [['127.0.0.1'], ['169.254.169.254']];
  let asked = 0;
  const egress = createEgress({
    listenHost: '127.0.0.1',
    ownPorts: () => [OWN_PORT],
    allow: undefined,
    resolve: async () => answers[asked++] ?? [],
  });
  using route = await egress.admit('turning.example', port, new AbortController().signal);
  for (let times = 0; times < 2; times++) {
    const socket = route.connect();
    const [text] = await once(socket, 'data');
    assert.deepEqual([String(text), socket.remoteAddress], ['here', '127.0.0.1']);
  }
  assert.equal(asked, 1);
  assert.equal(route.host, 'turning.example');
});

test('the second address of a name is tried when the first does not answer', async (t) => {
  const port = await listeningWith(t, (socket) => socket.end('here'));
  const egress = createEgress({
    listenHost: '127.0.0.1',
    ownPorts: () => [OWN_PORT],
    allow: undefined,
    resolve: async () => ['::1', '127.0.0.1'],
  });
  using route = await egress.admit('both.example', port, new AbortController().signal);
  assert.equal(String((await once(route.connect(), 'data'))[0]), 'here');
});

test('the wait for a silent resolver ends when the signal aborts', async () => {
  const egress = createEgress({
    listenHost: '127.0.0.1',
    ownPorts: () => [OWN_PORT],
    allow: undefined,
    resolve: () => new Promise(() => {}),
  });
  await assert.rejects(egress.admit('slow.example', 5432, AbortSignal.abort()), { category: 'timeout' });
});

test('disposing of a route destroys its sockets', async (t) => {
  const port = await listeningWith(t, () => {});
  const egress = egressFor(HOME);
  const route = await egress.admit('127.0.0.1', port, new AbortController().signal);
  const socket = route.connect();
  await once(socket, 'connect');
  route[Symbol.dispose]();
  await once(socket, 'close');
  assert.equal(socket.destroyed, true);
});

test('only loopback hosts count as listening on loopback', () => {
  const hosts = ['127.0.0.1', '127.0.0.2', '::1', 'localhost', '0.0.0.0', '::', '10.0.0.1', 'db.example', ''];
  assert.deepEqual(hosts.filter(isLoopbackHost), ['127.0.0.1', '127.0.0.2', '::1', 'localhost']);
});

test("a start does not load the Node.js module for names, which would read the system's configuration", () => {
  const gateway = new URL('../../../src/datasource/egress/egress.js', import.meta.url);
  const program = `await import(${JSON.stringify(gateway.href)}); console.log(process.moduleLoadList.join('\\n'));`;
  const args = ['--conditions=development', '--input-type=module', '--eval', program];
  const loaded = execFileSync(process.execPath, args, { encoding: 'utf8' }).split('\n');
  assert.ok(loaded.includes('NativeModule os'), 'what it does load is listed');
  assert.ok(!loaded.includes('NativeModule dns/promises'));
});
