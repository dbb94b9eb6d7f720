/** Each way to fail at start has a line of its own, with the problem and advice. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openProxySocket } from '#src/start/app/proxy-socket.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { type Overrides, OWNER, pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';

const MAIN = fileURLToPath(new URL('../../../server/main.js', import.meta.url));
const NOBODY = 65_534;

/** A data directory with one sealed connection, which a server has used. Each test makes a copy. */
const used = mkdtempSync(join(tmpdir(), 'troupe-used-'));
test.after(() => rmSync(used, { recursive: true, force: true }));
await use(join(used, 'data'));

async function use(dataDir: string): Promise<void> {
  const server = await startChildServer(
    { after: (cleanUp) => test.after(cleanUp) },
    { TROUPE_DATA_DIR: dataDir },
  );
  const files = join(dataDir, 'workspaces', OWNER.workspaceId, 'files');
  mkdirSync(files, { recursive: true });
  writeFileSync(join(files, 'sales.db'), '');
  await server.client.datasources.create({ slug: 'sales', connection: { kind: 'sqlite', path: 'sales.db' } });
  await server.end('SIGTERM');
  writeFileSync(join(dataDir, 'bootstrap.json'), '{}');
}

interface Failed {
  readonly code: number | null;
  readonly line: string;
}

/** Starts a server that cannot start. Resolves with its exit code and its only line of output. */
async function failToStart(
  t: TestContext,
  dataDir: string,
  overrides: Overrides = {},
  uid?: number,
): Promise<Failed> {
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [MAIN], {
    cwd: '/',
    env: { PATH, ...SETTINGS, ...pythonOfTests(), TROUPE_DATA_DIR: dataDir, ...overrides },
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  t.after(() => child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  let printed = '';
  for await (const text of child.stderr.setEncoding('utf8')) printed += text;
  const [code] = (await exited) as [number | null];
  const lines = printed.split('\n').filter((line) => line.startsWith('troupe: '));
  assert.equal(lines.length, 1, printed);
  return { code, line: lines[0]!.slice('troupe: '.length) };
}

function copyOfUsed(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), 'troupe-start-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  cpSync(join(used, 'data'), join(root, 'data'), { recursive: true });
  return join(root, 'data');
}

async function takenPort(t: TestContext): Promise<string> {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  const address = other.address();
  assert.ok(typeof address === 'object' && address !== null);
  return String(address.port);
}

test('the error for a port in use names the port and the setting to change', async (t) => {
  const port = await takenPort(t);
  const { code, line } = await failToStart(t, copyOfUsed(t), { TROUPE_PORT: port });
  assert.equal(code, 1);
  assert.equal(
    line,
    `Cannot listen on 127.0.0.1:${port}: another program uses the port. Stop that program (ss -ltnp shows it), or set TROUPE_PORT to another port.`,
  );
});

test('the error of a server with workers names a port in use, too', async (t) => {
  const port = await takenPort(t);
  const { line } = await failToStart(t, copyOfUsed(t), { TROUPE_PORT: port, TROUPE_WORKERS: '2' });
  assert.match(line, new RegExp(`^Cannot listen on 127.0.0.1:${port}: another .* set TROUPE_PORT to`));
});

for (const workers of ['1', '2']) {
  const withWorkers = `a server with ${workers} worker(s)`;
  const startWith = async (t: TestContext, path: string, group?: string) => {
    const settings = { TROUPE_WORKERS: workers, TROUPE_LISTEN_SOCKET: path };
    const withGroup = group === undefined ? {} : { TROUPE_LISTEN_SOCKET_GROUP: group };
    return (await failToStart(t, copyOfUsed(t), { ...settings, ...withGroup })).line;
  };
  const folder = (t: TestContext) => {
    const path = mkdtempSync(join(tmpdir(), 'troupe-start-'));
    t.after(() => rmSync(path, { recursive: true, force: true }));
    return path;
  };

  test(`${withWorkers} names a socket for proxies on which another program listens, and leaves it alone`, async (t) => {
    const path = join(folder(t), 'http.sock');
    const other = createServer((socket) => socket.destroy()).listen(path);
    await once(other, 'listening');
    t.after(() => other.close());
    assert.equal(
      await startWith(t, path),
      `Another program listens on the socket ${path} (TROUPE_LISTEN_SOCKET). Stop that program (ss -lxp shows it), or set TROUPE_LISTEN_SOCKET to another path.`,
    );
    await once(connect(path), 'connect');
  });

  test(`${withWorkers} names a file in the place of the socket for proxies, and leaves it alone`, async (t) => {
    const path = join(folder(t), 'http.sock');
    writeFileSync(path, 'mine');
    assert.match(await startWith(t, path), /^The file \S+ \(TROUPE_LISTEN_SOCKET\) is not a socket\. Set /);
    assert.equal(readFileSync(path, 'utf8'), 'mine');
  });

  test(`${withWorkers} names a group of the socket for proxies that does not exist`, async (t) => {
    assert.match(
      await startWith(t, join(folder(t), 'http.sock'), 'no-such-group'),
      /^The group no-such-group \(TROUPE_LISTEN_SOCKET_GROUP\) does not exist\. Create it /,
    );
  });
}

test('a server refuses to start when another program listens on its socket for proxies, or when a pipe is in the place of the lock', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-start-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'http.sock');
  const program = `
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(${JSON.stringify(path)})
listener.listen(0)
client = socket.socket(socket.AF_UNIX)
client.connect(${JSON.stringify(path)})
print("full", flush=True)
sys.stdin.read()`;
  const other = spawn('python3', ['-c', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => other.kill());
  await once(other.stdout, 'data');
  const open = (listenSocket: string) => openProxySocket({ listenSocket, listenSocketGroup: undefined });
  await assert.rejects(open(path), /^OperatorError: Another program listens on the socket/);
  assert.ok(statSync(path).isSocket());
  const second = join(folder, 'second.sock');
  assert.equal(spawnSync('mkfifo', [`${second}.lock`]).status, 0);
  await assert.rejects(open(second), /second\.sock\.lock beside the socket \S+ is not an ordinary file/);
});

test('a keyring setting that names a directory has its own error line even when there is no store yet', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'troupe-start-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const { code, line } = await failToStart(t, join(root, 'data'), { TROUPE_KEYRING_FILE: root });
  assert.equal(code, 1);
  assert.ok(
    line.startsWith(`The keyring ${root} is a directory. Set TROUPE_KEYRING_FILE to the file.`),
    line,
  );
});

test('the error for an address that this machine does not have names the address', async (t) => {
  const { line } = await failToStart(t, copyOfUsed(t), { TROUPE_HOST: '192.0.2.1' });
  assert.match(line, /: this machine does not have the address 192\.0\.2\.1\. Set TROUPE_HOST /);
});

test('the error for an unknown host name contains the name', async (t) => {
  const { line } = await failToStart(t, copyOfUsed(t), { TROUPE_HOST: 'no-such-host.invalid' });
  assert.match(line, /: the name no-such-host\.invalid is not known here\. Set TROUPE_HOST /);
});

for (const [what, spoil, expected] of [
  ['is missing', (path) => rmSync(path), /is missing, but this store has data that it seals\. Restore it/],
  ['is empty', (path) => writeFileSync(path, ''), /is damaged: the file is empty\. Restore it/],
  ['is not JSON', (path) => writeFileSync(path, '{"keys'), /is damaged: it is not valid JSON\. Restore it/],
  ['has no key', (path) => writeFileSync(path, '{}'), /is damaged: it does not name an active key\. Restore/],
  [
    'has a broken key',
    (path) => writeFileSync(path, '{"active": "a", "keys": {"a": "AAAA"}}'),
    /is damaged: its key "a" is not a sound key\. Restore/,
  ],
  [
    'belongs to another store',
    (path) => writeFileSync(path, `{"active": "a", "keys": {"a": "${'A'.repeat(43)}="}}`),
    /does not fit this data directory: it lacks the key key_\w+\. Restore the keyring that belongs/,
  ],
  [
    'is a directory',
    (path) => {
      rmSync(path);
      mkdirSync(path);
    },
    /is a directory\. Set TROUPE_KEYRING_FILE to the file\. Container engines make/,
  ],
] as const satisfies readonly (readonly [string, (path: string) => void, RegExp])[]) {
  test(`a keyring that ${what} has its own error line`, async (t) => {
    const dataDir = copyOfUsed(t);
    spoil(join(dataDir, 'keyring.json'));
    const { code, line } = await failToStart(t, dataDir);
    assert.equal(code, 1);
    assert.match(line, /^The keyring \/.*\/keyring\.json /);
    assert.match(line, expected);
  });
}

for (const [what, spoil, expected] of [
  ['is no store', (file) => writeFileSync(file, 'x'.repeat(10_000)), /is damaged: its head is not that of a/],
  ['is empty', (file) => truncateSync(file, 0), /is damaged: the file is empty\. Restore it from a backup/],
  [
    'is cut short',
    (file) => truncateSync(file, 4096 * 3),
    /is damaged: .*the file is cut short: \d+ pages are missing at its end\)?\. Restore it from a backup/,
  ],
] as const satisfies readonly (readonly [string, (file: string) => void, RegExp])[]) {
  test(`a store that ${what} is refused before it is mapped into memory`, async (t) => {
    const dataDir = copyOfUsed(t);
    const file = join(dataDir, 'store', 'data.mdb');
    spoil(file);
    const before = readFileSync(file);
    const { code, line } = await failToStart(t, dataDir);
    assert.equal(code, 1);
    assert.match(line, expected);
    assert.deepEqual(readFileSync(file), before);
  });
}

test('a missing store next to the credentials of an earlier one is refused, unless a setting confirms it', async (t) => {
  const dataDir = copyOfUsed(t);
  rmSync(join(dataDir, 'store'), { recursive: true });
  const { code, line } = await failToStart(t, dataDir);
  assert.equal(code, 1);
  assert.match(
    line,
    /^There is no store at .*, although .*bootstrap\.json exists\. If a volume is not mounted/,
  );
  assert.match(line, /To begin with an empty store, set TROUPE_NEW_STORE=true for one start\.$/);
  assert.equal(existsSync(join(dataDir, 'store')), false);
  rmSync(join(dataDir, 'bootstrap.json'));
  assert.match((await failToStart(t, dataDir)).line, /although .*keyring\.json exists/);
  const server = await startChildServer(t, { TROUPE_DATA_DIR: dataDir, TROUPE_NEW_STORE: 'true' });
  assert.deepEqual((await server.client.notebooks.list()).items, []);
});

test("the error for files that the server's user may not read or write names the files", async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can start a server as another user');
  const dataDir = copyOfUsed(t);
  chmodSync(join(dataDir, '..'), 0o755);
  const asNobody = async () => (await failToStart(t, dataDir, {}, NOBODY)).line;
  assert.match(await asNobody(), /^The data directory .* cannot be .*\((EACCES|EPERM)\)\. Run the server as/);
  const give = (...names: string[]) => chownSync(join(dataDir, ...names), NOBODY, NOBODY);
  for (const names of [[], ['claim'], ['run'], ['store']]) give(...names);
  assert.match(await asNobody(), /^The store .*data\.mdb cannot be read: permission is denied \(EACCES\)\./);
  chmodSync(join(dataDir, 'store', 'data.mdb'), 0o444);
  give('store', 'lock.mdb');
  assert.match(await asNobody(), /^The store at .* cannot be opened: permission is denied \(EACCES\)\./);
  give('store', 'data.mdb');
  chmodSync(join(dataDir, 'store', 'data.mdb'), 0o600);
  assert.match(await asNobody(), /^The keyring .* cannot be read: permission is denied \(EACCES\)\./);
});
