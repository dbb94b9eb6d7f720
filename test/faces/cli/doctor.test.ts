import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'node:test';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';
import { MAIN, Shell } from './troupe-process.ts';

const server = await startServer(test);

interface Report {
  readonly ok: boolean;
  readonly findings: readonly {
    readonly check: string;
    readonly status: string;
    readonly detail: string;
    readonly advice: string | null;
  }[];
}

function find({ findings }: Report, check: string) {
  const found = findings.find((finding) => finding.check === check);
  assert.ok(found, check);
  return found;
}

test('the doctor starts no program that the settings file of a cloned folder names', async (t) => {
  const cwd = temporaryDirectory(t);
  const trap = join(cwd, 'python');
  writeFileSync(trap, `#!/bin/sh\ntouch '${join(cwd, 'sprung')}'\nexit 1\n`, { mode: 0o700 });
  mkdirSync(join(cwd, '.git'));
  writeFileSync(join(cwd, 'troupe.config.json'), JSON.stringify({ python: trap }), { mode: 0o600 });
  const { PATH = '' } = process.env;
  const { stdout, stderr } = spawnSync(process.execPath, [MAIN, 'doctor'], {
    cwd,
    env: { PATH, HOME: cwd },
    encoding: 'utf8',
  });
  assert.match(stdout, /Python/);
  assert.match(stderr, /troupe\.config\.json is ignored/);
  assert.ok(!existsSync(join(cwd, 'sprung')));
});

test('the doctor finds no problem on a healthy machine and in the server that runs on it', async () => {
  const shell = new Shell(test, server);
  const env = { TROUPE_DATA_DIR: server.dataDir, TROUPE_PORT: '0' };
  const report = await shell.json<Report>(['doctor'], { env });
  assert.equal(report.ok, true);
  assert.deepEqual(
    report.findings.map(({ check }) => check),
    [
      'Node.js',
      'uWebSockets.js',
      'lmdb',
      'Python',
      'marimo',
      'confinement',
      'kernels',
      'databases',
      'data directory',
      'data directory lock',
      'store',
      'keyring',
      'disk',
      'port',
      'server',
      'token',
      'model',
    ],
  );
  assert.equal(find(report, 'data directory lock').detail, 'held by a running server');
  assert.match(find(report, 'store').detail, /\/store, \d+\.\d MiB, can be read$/);
  assert.match(
    find(report, 'confinement').detail,
    /^(full|partial|none): .* \(found by the running server at /,
  );
  assert.match(find(report, 'kernels').detail, /^a kernel starts, .* \(found by the running server at /);
  assert.equal(find(report, 'token').detail, 'accepted in the workspace ws_home');
  const { status, detail, advice } = find(report, 'model');
  assert.deepEqual([status, detail], ['warning', 'no model is configured: agents cannot answer prompts']);
  assert.match(String(advice), /ANTHROPIC_API_KEY.*TROUPE_LOCAL_MODEL.*troupe models set-key/);
});

test('the doctor reports the default model, and sends a request to the model only with --model', async (t) => {
  const model = await startScriptedModel(t);
  const own = await startServer(t, {
    TROUPE_OPENAI_COMPATIBLE_URL: model.url,
    TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
  });
  const shell = new Shell(t, own);
  const env = { TROUPE_DATA_DIR: own.dataDir, TROUPE_PORT: '0' };
  const report = await shell.json<Report>(['doctor'], { env });
  assert.equal(find(report, 'model').detail, 'openai-compatible/scripted is configured');
  assert.equal(model.exchanges.length, 0);
  model.script(
    (exchange) => exchange.text('ready').end(),
    (exchange) => exchange.refuse(401),
  );
  const asked = await shell.json<Report>(['doctor', '--model'], { env });
  assert.match(
    find(asked, 'model answers').detail,
    /^openai-compatible\/scripted: The model answered\. \(\d+ ms\)$/,
  );
  const { exitCode, out } = await shell.troupe(['doctor', '--model', '--json'], { env });
  const failed = find(JSON.parse(out), 'model answers');
  assert.deepEqual([exitCode, failed.status], [1, 'problem']);
  assert.match(failed.detail, /does not accept the key/);
});

test('the doctor gives advice for each problem, and exits with 1', async (t) => {
  const shell = new Shell(test);
  const data = join(shell.cwd, 'data');
  mkdirSync(data);
  chmodSync(data, 0o755);
  writeFileSync(join(data, 'keyring.json'), '{}');
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  const { port } = other.address() as AddressInfo;
  const env = { TROUPE_PYTHON: '/nowhere/python', TROUPE_DATA_DIR: data, TROUPE_PORT: String(port) };
  const asked = {
    ...env,
    SERVICE_BASE_URL: 'http://127.0.0.1:1',
    SERVICE_ACCESS_TOKEN: 'x',
    SERVICE_WORKSPACE_ID: 'w',
  };
  const { exitCode, out } = await shell.troupe(['doctor', '--json'], { env: asked });
  const report: Report = JSON.parse(out);
  assert.deepEqual([exitCode, report.ok], [1, false]);
  const found = report.findings
    .filter(({ status }) => status !== 'ok')
    .map(({ check, status }) => `${check} ${status}`);
  assert.deepEqual(found, [
    'Python problem',
    'data directory warning',
    'store problem',
    'keyring problem',
    'port problem',
    'server warning',
  ]);
  assert.ok(report.findings.every(({ status, advice }) => (status === 'ok') === (advice === null)));
  const people = await shell.troupe(['doctor'], { env: asked });
  assert.equal(people.exitCode, 1);
  assert.match(
    people.out,
    /^✗ Python +Cannot start Python at \/nowhere\/python: .*\n +→ Run troupe setup, /m,
  );
});

test('the doctor checks the files, sockets and folders that settings name outside of the data directory', async (t) => {
  const shell = new Shell(test);
  const at = (name: string) => join(shell.cwd, name);
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  const { port } = other.address() as AddressInfo;
  const base = {
    TROUPE_DATA_DIR: at('data'),
    TROUPE_PORT: '0',
    TROUPE_PYTHON: '/nowhere/python',
    TROUPE_LISTEN_SOCKET: at('http.sock'),
    TROUPE_KERNEL_NODES: 'join',
    TROUPE_NODES_HOST: '127.0.0.1',
    TROUPE_OIDC_ISSUER: 'https://provider.example',
    TROUPE_OIDC_CLIENT_ID: 'troupe',
    TROUPE_OIDC_CLIENT_SECRET_FILE: at('secret'),
    TROUPE_BACKUP_DIR: at('backups'),
  };
  const CHECKS = ['proxy socket', 'port of kernel nodes', 'identity provider', 'backups'];
  const examine = async (env: Record<string, string>) => {
    const { out } = await shell.troupe(['doctor', '--json'], { env: { ...base, ...env } });
    const report: Report = JSON.parse(out);
    return report.findings
      .filter(({ check }) => CHECKS.includes(check))
      .map(({ status, detail, advice }) => `${status}: ${detail} ${advice}`);
  };
  writeFileSync(at('secret'), 'secret');
  const sound = await examine({ TROUPE_NODES_PORT: '0' });
  assert.equal(sound.length, CHECKS.length - 1, 'any free port will do');
  for (const finding of sound) assert.match(finding, /^ok: /);

  writeFileSync(at('secret'), '');
  writeFileSync(at('file'), '');
  const [socket, nodes, provider, backups] = await examine({
    TROUPE_LISTEN_SOCKET_GROUP: 'no-such-group',
    TROUPE_NODES_PORT: String(port),
    TROUPE_BACKUP_DIR: at('file/backups'),
  });
  assert.match(socket!, /^problem: the group no-such-group .* does not exist Create it \(groupadd --system /);
  assert.match(nodes!, /^problem: .* another program uses the port .* set TROUPE_NODES_PORT to another port/);
  assert.match(provider!, /^problem: .*secret is empty /);
  assert.match(backups!, /^problem: no backup can be made in .*: a part of the path is not a directory/);
  const [folder] = await examine({ TROUPE_LISTEN_SOCKET: at('missing/http.sock'), TROUPE_NODES_PORT: '0' });
  assert.match(folder!, /^warning: .*missing, the folder of TROUPE_LISTEN_SOCKET, does not exist /);
  const [file] = await examine({ TROUPE_LISTEN_SOCKET: at('file'), TROUPE_NODES_PORT: '0' });
  assert.match(file!, /^problem: .*file \(TROUPE_LISTEN_SOCKET\) is not a socket /);
});

test('the doctor of a server that only reads finds no problem in a read-only directory', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can start a command as another user');
  const place = temporaryDirectory(t);
  const data = join(place, 'data');
  cpSync(server.dataDir, data, { recursive: true, filter: (path) => !path.endsWith('.sock') });
  for (const path of [place, data, join(data, 'store')]) chmodSync(path, 0o755);
  chmodSync(join(data, 'store', 'data.mdb'), 0o644);
  rmSync(join(data, 'claim'), { force: true }); // the claim of the running server
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  const { port } = other.address() as AddressInfo;
  const examine = (readOnly: string) => {
    const settings = { TROUPE_DATA_DIR: data, TROUPE_PORT: String(port), TROUPE_READ_ONLY: readOnly };
    const { stdout } = spawnSync(process.execPath, [MAIN, 'doctor', '--json'], {
      cwd: '/',
      env: { PATH: process.env.PATH ?? '', TROUPE_PYTHON: '/nowhere/python', ...settings },
      uid: 65_534,
      gid: 65_534,
      encoding: 'utf8',
    });
    const report: Report = JSON.parse(stdout);
    return ['data directory', 'port'].map((check) => find(report, check).status);
  };
  assert.deepEqual(examine('true'), ['ok', 'warning']);
  assert.deepEqual(examine('false'), ['problem', 'problem']);
});

test('the doctor opens the store and the keyring without changing them, and reports their damage', async () => {
  const shell = new Shell(test);
  const data = join(shell.cwd, 'copy');
  cpSync(server.dataDir, data, { recursive: true, filter: (path) => !path.endsWith('.sock') });
  const env = { TROUPE_DATA_DIR: data, TROUPE_PYTHON: '/nowhere/python', TROUPE_PORT: '0' };
  const keyring = join(data, 'keyring.json');
  const store = join(data, 'store', 'data.mdb');
  const examine = async (check: string) => {
    const before = [keyring, store].map((path) => (existsSync(path) ? readFileSync(path) : undefined));
    const { out } = await shell.troupe(['doctor', '--json'], { env });
    const after = [keyring, store].map((path) => (existsSync(path) ? readFileSync(path) : undefined));
    assert.deepEqual(after, before);
    const { status, detail, advice } = find(JSON.parse(out), check);
    return `${status}: ${detail} ${advice}`;
  };
  assert.match(await examine('store'), /^ok: /);
  assert.match(await examine('keyring'), /^ok: /);
  writeFileSync(keyring, `{"active": "a", "keys": {"a": "${'A'.repeat(43)}="}}`);
  assert.match(
    await examine('keyring'),
    /^problem: .* does not fit this data directory: .* Restore the keyring/,
  );
  rmSync(keyring);
  assert.match(await examine('keyring'), /^problem: .* is missing, but this store has data that it seals\. /);
  writeFileSync(store, readFileSync(store).subarray(0, 9000));
  assert.match(
    await examine('store'),
    /^problem: .*the file is cut short: \d+ pages are missing.* Restore it/,
  );
  rmSync(store);
  writeFileSync(join(data, 'bootstrap.json'), '{}');
  assert.match(
    await examine('store'),
    /^problem: There is no store at .* set TROUPE_NEW_STORE=true for one start/,
  );
});

test('the doctor does not report a file as missing or a port as free when its user cannot see it', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can start a command as another user');
  const { port } = new URL(server.baseUrl);
  const { stdout } = spawnSync(process.execPath, [MAIN, 'doctor', '--json'], {
    cwd: '/',
    env: { PATH: process.env.PATH ?? '', TROUPE_DATA_DIR: server.dataDir, TROUPE_PORT: port },
    uid: 65_534,
    gid: 65_534,
    encoding: 'utf8',
  });
  const report: Report = JSON.parse(stdout);
  const directory = find(report, 'data directory');
  assert.equal(directory.status, 'problem');
  assert.match(directory.detail, /^\/.* belongs to the user 0, and the present user cannot read it$/);
  assert.match(String(directory.advice), /^Run this command as the user that runs the server/);
  const checks = report.findings.map(({ check }) => check);
  for (const check of ['data directory lock', 'store', 'keyring'])
    assert.equal(checks.includes(check), false, check);
  assert.match(
    find(report, 'port').detail,
    /is in use, but this user cannot see whether the server uses it$/,
  );
});

test('the doctor reports a machine without temporary files, and continues', async () => {
  const shell = new Shell(test);
  const env = { TROUPE_DATA_DIR: join(shell.cwd, 'data'), TROUPE_PORT: '0', TMPDIR: '/nowhere' };
  const { exitCode, out } = await shell.troupe(['doctor', '--json'], { env });
  const report: Report = JSON.parse(out);
  assert.equal(exitCode, 1);
  const { detail, advice } = find(report, 'Python');
  assert.match(detail, /^Temporary files cannot be made in \/nowhere: it does not exist \(ENOENT\)\.$/);
  assert.match(String(advice), /set TMPDIR to one that is\.$/);
  assert.equal(find(report, 'data directory').status, 'ok');
});

test('the doctor reports a token that the server does not know', async () => {
  const shell = new Shell(test, server);
  const env = { SERVICE_ACCESS_TOKEN: 'of-another-server', TROUPE_PYTHON: '/nowhere/python' };
  const { exitCode, out } = await shell.troupe(['doctor', '--json'], { env });
  const { advice } = find(JSON.parse(out), 'token');
  assert.deepEqual(
    [exitCode, advice],
    [1, 'Set SERVICE_ACCESS_TOKEN to a token of this server. Create one with: troupe token create.'],
  );
  assert.doesNotMatch(out, /of-another-server/);
});

test('a silent server leads to a special exit code, and the message names the URL of the server', async () => {
  const shell = new Shell(test);
  const env = {
    SERVICE_BASE_URL: 'http://127.0.0.1:1',
    SERVICE_ACCESS_TOKEN: 'x',
    SERVICE_WORKSPACE_ID: 'w',
  };
  const { exitCode, out, err } = await shell.troupe(['notebooks', 'list'], { env });
  assert.deepEqual([exitCode, out], [3, '']);
  assert.match(
    err,
    /^troupe: No answer from http:\/\/127\.0\.0\.1:1\/.*\n {2}Is `troupe serve` running there\?/,
  );
});

/** Returns the findings about confinement, as text, with these results of a server in the data directory. */
async function withChecks(shell: Shell, dataDir: string, checks: unknown): Promise<string> {
  writeFileSync(join(dataDir, 'confinement.json'), JSON.stringify(checks), { mode: 0o600 });
  const env = { TROUPE_DATA_DIR: dataDir, TROUPE_PORT: '0' };
  const { out } = await shell.troupe(['doctor', '--json'], { env });
  const { findings } = JSON.parse(out) as Report;
  return findings
    .filter(({ check }) => ['confinement', 'kernels', 'last start'].includes(check))
    .map(({ check, status, detail }) => `${check} ${status}: ${detail}`)
    .join('\n');
}

test('the doctor reports the confinement that the running server found, not its own, and the problem of the last start', async (t) => {
  const own = await startServer(t);
  const shell = new Shell(t, own);
  const checkedAt = '2026-11-28T10:00:00.000Z';
  const problem = 'mount: Operation not permitted';
  const confinement = 'partial: no namespaces';
  const running = await withChecks(shell, own.dataDir, { checkedAt, confinement, problem });
  assert.equal(
    running,
    [
      `confinement warning: ${confinement} (found by the running server at ${checkedAt})`,
      `kernels problem: ${problem} (found by the running server at ${checkedAt})`,
    ].join('\n'),
  );
  const stopped = join(shell.cwd, 'stopped');
  mkdirSync(stopped, { mode: 0o700 });
  const found = await withChecks(shell, stopped, { checkedAt, confinement, problem });
  assert.match(found, /^confinement (ok|warning): (?!partial: no namespaces)/);
  assert.match(found, /^kernels ok: a kernel starts, confined so$/m);
  assert.match(
    found,
    new RegExp(`^last start warning: the server of ${checkedAt} could start no kernel: ${problem} `, 'm'),
  );
  const damaged = await withChecks(shell, stopped, 'nothing of a server');
  assert.doesNotMatch(damaged, /last start/);
});
