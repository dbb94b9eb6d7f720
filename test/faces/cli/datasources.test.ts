import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { Datasource } from '#src/contract/wire/datasource.ts';
import type { Key } from '#src/contract/wire/health.ts';
import { runProgram } from '#src/faces/cli/program.ts';
import { addMember } from '#test/support/members.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { marimoFile } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const shell = new Shell(test, server);
const NOWHERE = JSON.stringify({
  kind: 'postgres',
  connection_string: 'postgres://u:canary-password@127.0.0.1:1/d',
  schema: 'public',
});

test('a connection is read from standard input or a file, stored, replaced, shared and deleted', async () => {
  const sealed = await shell.text(['datasources', 'create', 'sales', '-', '--name', 'Sales'], {
    input: NOWHERE,
  });
  assert.equal(sealed, 'sales is saved (revision 1).');
  const file = join(server.dataDir, 'connection.json');
  writeFileSync(file, JSON.stringify({ kind: 'sqlite', path: 'sales.db' }));
  assert.equal(await shell.text(['datasources', 'replace', 'sales', file]), 'sales is saved (revision 2).');
  const listed = await shell.json<Datasource[]>(['datasources', 'list']);
  assert.deepEqual(listed, [await server.client.datasources.get('sales')]);
  assert.match(
    await shell.text(['datasources', 'list']),
    /^SLUG +KIND +NAME +REVISION\nsales +sqlite +Sales +2$/,
  );
  const shared = await shell.text(['datasources', 'share', 'sales', 'role:viewer']);
  assert.equal(shared, 'sales is shared with role:viewer.');
  assert.match(await shell.text(['datasources', 'show', 'sales']), /role:viewer/);
  assert.equal(await shell.text(['datasources', 'delete', 'sales']), 'sales is deleted.');
  assert.equal((await shell.troupe(['datasources', 'show', 'sales'])).exitCode, 1);
});

test('a connection is made of a URL, and its password comes from standard input', async () => {
  const made = await shell.text(
    ['datasources', 'create', 'books', 'mysql+pymysql://root@127.0.0.1/test', '--test'],
    {
      input: '\n',
    },
  );
  assert.equal(made, 'books is saved (revision 1).');
  const replaced = await shell.text(
    [
      'datasources',
      'replace',
      'books',
      'postgresql://postgres@127.0.0.1/postgres?sslmode=disable&schema=public',
      '--test',
    ],
    { input: 'p@ss/word %20\n' },
  );
  assert.equal(replaced, 'books is saved (revision 2).');
  assert.equal(
    await shell.text(['datasources', 'replace', 'books', 'sqlite:///shop/books.db']),
    'books is saved (revision 3).',
  );
});

test('a URL with a password, an unknown scheme or parameter, or without a user is refused, and nothing is sent', async () => {
  const refused = async (url: string) => {
    const { exitCode, err } = await shell.troupe(['datasources', 'create', 'no', url], { input: 'secret\n' });
    assert.equal(exitCode, 2, err);
    return err;
  };
  const err = await refused('postgres://ada:canary-word@127.0.0.1/sales');
  assert.match(err, /Leave the password out of the URL/);
  assert.doesNotMatch(err, /canary-word/);
  assert.match(
    await refused('oracle://ada@127.0.0.1/sales'),
    /A URL with oracle:\/\/ is not understood\. Use one of postgres, /,
  );
  assert.match(
    await refused('mysql://ada@127.0.0.1/sales?charset=utf8'),
    /the parameter charset, which connections of the kind mysql/,
  );
  assert.match(await refused('mysql://127.0.0.1'), /The URL lacks: database, user\./);
});

test('in a terminal the command asks for the missing members, and does not show the password', async () => {
  const shown: string[] = [];
  const answers = ['sales\r', 'adx\u007fa\r', 'canary', '-word\r'];
  const exitCode = await runProgram(['datasources', 'create', 'typed', 'mysql://127.0.0.1:1'], {
    terminal: { out: (text) => void shown.push(text), err: (text) => void shown.push(text), color: false },
    input: {
      read: () => assert.fail('a terminal is not read to its end'),
      async *lines() {},
      isTerminal: true,
      onInterrupt: () => ({ [Symbol.dispose]: () => {} }),
      onKey(listener) {
        let isOpen = true;
        const type = () => {
          const next = isOpen ? answers.shift() : undefined;
          if (next === undefined) return;
          listener(next);
          setImmediate(type);
        };
        setImmediate(type);
        return {
          [Symbol.dispose]() {
            isOpen = false;
          },
        };
      },
    },
    env: shell.env,
    cwd: shell.cwd,
  });
  assert.equal(exitCode, 0, shown.join(''));
  assert.equal(
    shown.join(''),
    'Database: sales\nUser: adx\b \ba\nPassword: \ntyped is saved (revision 1).\n',
  );
});

test('a reader sees a granted datasource without its grants, and editors and owners see the grants', async () => {
  await server.client.datasources.create({ slug: 'stock', connection: { kind: 'sqlite', path: 'stock.db' } });
  const vera = await addMember(server, 'vera', 'viewer');
  const env = { SERVICE_ACCESS_TOKEN: vera.token };
  assert.equal((await shell.troupe(['datasources', 'show', 'stock'], { env })).exitCode, 1);
  await server.client.datasources.grant('stock', 'user:vera');
  const { exitCode, out, err } = await shell.troupe(['datasources', 'show', 'stock'], { env });
  assert.equal(exitCode, 0, err);
  assert.match(out, /^SLUG +KIND +NAME +REVISION\nstock +sqlite/);
  assert.match(err, /With whom it is shared is shown to editors and owners\./);
  const grants = (options: object) =>
    shell.json<{ grants: readonly { subject: string }[] | null }>(['datasources', 'show', 'stock'], options);
  assert.equal((await grants({ env })).grants, null);
  assert.deepEqual(
    (await grants({})).grants?.map(({ subject }) => subject),
    ['user:vera'],
  );
});

test('a failed connection test prints the reason and exits with 1, and shows nothing of the connection', async () => {
  await shell.text(['datasources', 'create', 'nowhere', '-'], { input: NOWHERE });
  for (const [args, options] of [
    [['datasources', 'test', 'nowhere'], {}],
    [['datasources', 'test', '--connection', '-'], { input: NOWHERE }],
    [['datasources', 'create', 'other', '-', '--test'], { input: NOWHERE }],
  ] as const) {
    const { exitCode, out, err } = await shell.troupe([...args], options);
    assert.equal(exitCode, 1);
    assert.match(out + err, /The server refused the connection\./);
    assert.doesNotMatch(out + err, /canary/);
  }
});

test('input that is not JSON is refused without being quoted', async () => {
  const input = '{"connection_string": "canary-password"';
  const { exitCode, err } = await shell.troupe(['datasources', 'create', 'broken', '-'], { input });
  assert.equal(exitCode, 2);
  assert.match(err, /Standard input is not valid JSON/);
  assert.doesNotMatch(err, /canary/);
});

test('replacing a connection can keep, change or remove the name of the datasource', async () => {
  const connection = JSON.stringify({ kind: 'sqlite', path: 'a.db' });
  await shell.text(['datasources', 'create', 'named', '-', '--name', 'First'], { input: connection });
  const nameAfter = async (...args: string[]) => {
    await shell.text(['datasources', 'replace', 'named', '-', ...args], { input: connection });
    return (await server.client.datasources.get('named')).name;
  };
  assert.equal(await nameAfter(), 'First');
  assert.equal(await nameAfter('--name', 'Second'), 'Second');
  assert.equal(await nameAfter('--name', ''), null);
});

test('a grant of a datasource can be revoked', async () => {
  const connection = JSON.stringify({ kind: 'sqlite', path: 'a.db' });
  await shell.text(['datasources', 'create', 'lent', '-'], { input: connection });
  await shell.text(['datasources', 'share', 'lent', 'role:editor']);
  const revoked = await shell.text(['datasources', 'share', 'lent', 'role:editor', '--revoke']);
  assert.equal(revoked, 'lent is no longer shared with role:editor.');
  assert.deepEqual(await server.client.datasources.grants('lent'), { items: [] });
});

test('the schema is printed as one JSON document', async () => {
  const document = await shell.json<object>(['datasources', 'schema']);
  assert.deepEqual(document, await server.client.datasources.schema());
});

test('a new key seals the connections that are created after the key', async () => {
  const before = await shell.json<Key[]>(['keys', 'list']);
  const after = await shell.json<Key[]>(['keys', 'add']);
  assert.equal(after.length, before.length + 1);
  const active = after.find((key) => key.active);
  assert(active !== undefined && !before.some(({ id }) => id === active.id));
  const connection = JSON.stringify({ kind: 'sqlite', path: 'a.db' });
  await shell.text(['datasources', 'create', 'newer', '-'], { input: connection });
  const keys = await shell.json<Key[]>(['keys', 'list']);
  assert.equal(keys.find(({ id }) => id === active.id)?.sealed, active.sealed + 1);
});

test('a rotation seals everything with a new key, and the old keys stay until they are deleted', async () => {
  const before = await shell.json<Key[]>(['keys', 'list']);
  const after = await shell.json<Key[]>(['keys', 'rotate']);
  const [active, ...more] = after.filter((key) => key.active);
  assert(active !== undefined && more.length === 0 && !before.some(({ id }) => id === active.id));
  assert.deepEqual(
    after.filter((key) => !key.active).map(({ id, sealed }) => [id, sealed]),
    before.map(({ id }) => [id, 0]),
  );
  assert.deepEqual(await shell.json(['keys', 'list']), after);
});

test('datasources of a notebook are added, listed, used by a run and removed from the command line', async () => {
  await server.client.datasources.create({
    slug: 'orders',
    connection: { kind: 'sqlite', path: 'orders.db' },
  });
  const code =
    'from troupe import datasource\ncursor = datasource("orders").cursor()\ncursor.execute("select 40 + 2")\nprint(cursor.fetchall())';
  writeFileSync(join(shell.cwd, 'orders.py'), marimoFile({ show: code }));
  await server.client.files.put('orders.db', new Uint8Array());
  assert.equal((await shell.troupe(['run', 'orders.py'])).exitCode, 1, 'it may not use the datasource yet');
  const unknown = await shell.troupe(['run', 'orders.py', '--datasource', 'no-such']);
  assert.match(unknown.err, /There is no datasource no-such that you may read/);
  const ran = await shell.troupe(['run', 'orders.py', '--datasource', 'orders']);
  assert.deepEqual([ran.exitCode, /\[\(42,\)\]/.test(ran.out)], [0, true], ran.err);
  assert.deepEqual(await shell.json(['notebooks', 'datasources', 'list', 'orders.py']), ['orders']);
  await shell.text(['notebooks', 'datasources', 'remove', 'orders.py', 'orders']);
  assert.equal(await shell.text(['notebooks', 'datasources', 'list', 'orders.py', '--json']), '[]');
  assert.equal(
    (await shell.troupe(['notebooks', 'datasources', 'remove', 'orders.py', 'orders'])).exitCode,
    1,
  );
  assert.equal((await shell.troupe(['notebooks', 'datasources', 'add', 'orders.py', 'no-such'])).exitCode, 1);
  await shell.text(['notebooks', 'datasources', 'add', 'orders.py', 'orders', 'orders']);
  assert.deepEqual(await shell.json(['notebooks', 'datasources', 'list', 'orders.py']), ['orders']);
});
