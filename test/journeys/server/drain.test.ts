// tier: whole, because it kills, fills and restarts servers of several processes
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import test from 'node:test';
import { type ChildServer, startChildServer } from '#test/support/child-server.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { descendants, eventually, gone } from '#test/support/processes.ts';
import { OWNER, pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

/** Cells that no interrupt stops, each with a process of its own. */
const STUBBORN = {
  loop: 'todo = ["begun"]\nwhile True:\n  try:\n    if todo: print(todo.pop(), flush=True)\n    while True: pass\n  except BaseException: pass',
  native: 'print("begun", flush=True)\nsum(range(10**11))',
  child:
    'import subprocess\np = subprocess.Popen(["sleep", "1000"], start_new_session=True)\nprint("begun", flush=True)\np.wait()',
};

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} ends running runs, notifies subscribers, and the server exits 0 in time`, async (t) => {
    const server = await startChildServer(t);
    const notebooks = await Promise.all(
      Object.values(STUBBORN).map(async (code) => {
        const notebook = await openNotebook(server, { a: code });
        const events = await EventLog.open(server.client, notebook.id);
        const runId = await notebook.submit(['a']);
        await events.until(({ type }) => type === 'console-output');
        return { notebook, events, runId };
      }),
    );
    const idle = await openNotebook(server, { a: '1' });
    const idleEvents = await EventLog.open(server.client, idle.id);
    const children = descendants(server.pid);

    const resynced = [...notebooks.map(({ events }) => events), idleEvents].map((events) =>
      events.next(({ type }) => type === 'session.resync-required'),
    );
    const ended = server.end(signal);
    for (const event of await Promise.all(resynced)) {
      assert.deepEqual(event.data, { reason: 'server_stopping' });
    }
    assert.deepEqual(await ended, { code: 0, signal: null });
    await gone(children);
    for (const { events, runId } of notebooks) {
      const end = events.types.indexOf('session.resync-required');
      const told = events.events
        .slice(0, end)
        .flatMap((event) =>
          event.type === 'run-status' && event.data.status === 'failed' ? [event.data] : [],
        );
      assert.deepEqual(
        told.map((data) => [data.runId, data.error?.code]),
        [[runId, 'server_stopped']],
      );
      await events[Symbol.asyncDispose]();
    }
    await idleEvents[Symbol.asyncDispose]();

    const after = await server.again();
    for (const { runId } of notebooks) {
      const { status, error } = await after.client.runs.get(runId);
      assert.deepEqual([status, error?.code], ['failed', 'server_stopped']);
    }
  });
}

/** Sends the head of a request without its body. A drain waits a second for the body. */
async function holdRequest({ baseUrl }: ChildServer): Promise<void> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const head = [
    'POST /api/v3/notebooks HTTP/1.1',
    `host: ${hostname}`,
    `authorization: Bearer ${OWNER.token}`,
    `service-workspace-id: ${OWNER.workspaceId}`,
    'content-type: application/json',
    'content-length: 100',
    'expect: 100-continue',
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n{`);
  socket.on('error', () => {}); // the server resets the connection when it ends
  // Bytes on other connections come after it.
  await fetch(`${baseUrl}/healthz`);
}

test('a second signal ends the server at once', async (t) => {
  const server = await startChildServer(t);
  await openNotebook(server, { a: '1' });
  await holdRequest(server);
  const children = descendants(server.pid);
  process.kill(server.pid, 'SIGTERM');
  await eventually('the drain has begun', () =>
    fetch(`${server.baseUrl}/readyz`).then(
      ({ status }) => status === 503,
      () => true,
    ),
  );
  // A drain that came to its end would exit with 0.
  assert.deepEqual(await server.end('SIGTERM'), { code: 143, signal: null });
  await gone(children);
});

test('a draining server returns 503 on open connections', async (t) => {
  // With several workers, those without work would close their connections earlier.
  const server = await startChildServer(t, { TROUPE_WORKERS: '1' });
  const { hostname, port } = new URL(server.baseUrl);
  const socket = connect(Number(port), hostname).setEncoding('latin1');
  let answers = '';
  socket.on('data', (text: string) => {
    answers += text;
  });
  const ask = (path: string) =>
    socket.write(
      `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${OWNER.token}\r\nservice-workspace-id: ${OWNER.workspaceId}\r\n\r\n`,
    );
  ask('/readyz');
  await eventually('it is ready', () => answers.includes('"ready":true'));
  await holdRequest(server);
  const ended = server.end('SIGTERM');
  await eventually('readyz tells of the drain', () => {
    if (!answers.includes('The server is stopping.')) ask('/readyz');
    return answers.includes('The server is stopping.');
  });
  answers = '';
  ask('/api/v3/notebooks');
  await eventually('a refusal', () => answers.includes('"unavailable"'));
  assert.match(answers, /^HTTP\/1\.1 503 /);
  assert.match(answers, /retry-after: \d/i);
  assert.deepEqual(await ended, { code: 0, signal: null });
});

test('a server that was started by npm ends when npm receives a signal', async (t) => {
  const server = await startChildServer(t); // its folder holds a package for npm
  await server.end('SIGTERM');
  const script = `exec node --enable-source-maps ${join(import.meta.dirname, '../../../server/main.js')}`;
  writeFileSync(join(server.dataDir, 'package.json'), JSON.stringify({ scripts: { start: script } }));
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH, HOME, ...SETTINGS, ...pythonOfTests(), TROUPE_DATA_DIR: server.dataDir };
  const npm = spawn('npm', ['start', '--silent'], {
    cwd: server.dataDir,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.after(() => npm.kill('SIGKILL'));
  let printed = '';
  npm.stdout.on('data', (bytes) => {
    printed += bytes;
  });
  await eventually('it is ready', () => printed.includes('"msg":"ready"'));
  const children = descendants(npm.pid!);
  assert.ok(children.length >= 3, 'a server with its kernel host is below npm');
  const exited = once(npm, 'exit');
  npm.kill('SIGTERM');
  await exited;
  await gone(children);
});

test('a draining server answers requests for the drain time, while readyz reports an unready server', async (t) => {
  const server = await startChildServer(t, { TROUPE_DRAIN_S: '8' });
  const { id } = await server.client.notebooks.create({ serialization: { cells: [] } });
  const ended = server.end('SIGTERM');
  let status = 200;
  while (status === 200) ({ status } = await fetch(`${server.baseUrl}/readyz`));
  assert.equal(status, 503);
  const health = await fetch(`${server.baseUrl}/healthz`);
  assert.deepEqual([health.status, await health.json()], [503, { status: 'draining' }]);
  assert.equal((await server.client.notebooks.get(id)).id, id);
  assert.deepEqual(await ended, { code: 0, signal: null });
});

test('a server whose folder of backups hangs stops in time', async (t) => {
  const backups = temporaryDirectory(t);
  // A pipe without a writer hangs as a file system does whose server is gone.
  assert.equal(spawnSync('mkfifo', [join(backups, 'last-of-replaced-stores.json')]).status, 0);
  const server = await startChildServer(t, { TROUPE_BACKUP_DIR: backups });
  await eventually('the backup', () => readdirSync(backups).some((name) => name.startsWith('troupe-')));
  const { id } = await server.client.notebooks.create({});
  assert.deepEqual(await server.end('SIGTERM'), { code: 0, signal: null });
  const again = await server.again();
  assert.equal((await again.client.notebooks.get(id)).id, id);
});

test('SIGHUP drains a server of one process', async (t) => {
  const server = await startChildServer(t, { TROUPE_WORKERS: '1' });
  assert.deepEqual(await server.end('SIGHUP'), { code: 0, signal: null });
});
