// tier: whole, because it kills, fills and restarts servers of several processes
/** A server with several workers, some of which are killed, stopped or replaced. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import test, { type TestContext } from 'node:test';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import { type ChildServer, startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import {
  descendants,
  eventually,
  gone,
  kernelsOf,
  type WorkerFact,
  workersOf,
} from '#test/support/processes.ts';
import { OWNER } from '#test/support/server-fixture.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const SIZE = 3;
const SETTINGS = { TROUPE_WORKERS: String(SIZE) };

const server = await startChildServer(test, SETTINGS);

/** Repeats a request until it is answered, like a client whose connection was cut by the end of a worker. */
function answered<T>(what: string, ask: () => Promise<T>, withinMs?: number): Promise<T> {
  return eventually(what, () => ask().catch(() => undefined), withinMs);
}

function allServe(): Promise<readonly WorkerFact[]> {
  return eventually('all workers serve', async () => {
    const serving = await server.client.server().catch(() => undefined);
    const workers = workersOf(server.pid);
    return serving?.workers?.length === SIZE && workers.length === SIZE && workers;
  });
}

function statusOf(id: string): Promise<string> {
  return server.client.notebookSessions.get(id).then(({ status }) => status);
}

/** Returns the worker in which a session is at home: it has started the session's last kernel. */
function homeOf(sessionId: string): WorkerFact {
  const last = server.log.findLast(
    (line) => line.sessionId === sessionId && line.msg === 'a kernel has started',
  );
  const home = workersOf(server.pid).find(({ number }) => number === last?.worker);
  assert.ok(home !== undefined);
  return home;
}

/** Returns the inodes of the sockets that a process has. */
function socketsOf(pid: number): ReadonlySet<string | undefined> {
  const links = readdirSync(`/proc/${pid}/fd`).map((name) => linkOf(`/proc/${pid}/fd/${name}`));
  return new Set(links.map((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1]));
}

/** Returns the purpose of the open descriptor; the empty string when it was closed meanwhile. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

test('kill -9 of a worker ends its kernels, and its sessions come back in another worker', async () => {
  const notebook = await openNotebook(server, { a: 'x = 41' });
  const [first, ...others] = kernelsOf(server.pid);
  assert.ok(first !== undefined);
  const home = homeOf(notebook.id);
  process.kill(home.pid, 'SIGKILL');
  await answered('a request is answered', () => server.client.notebooks.get(notebook.id));
  await gone([first, ...others]);
  await answered('the session is ready again', async () => (await statusOf(notebook.id)) === 'ready');
  assert.equal(
    (await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: 'x = 42' }] })).status,
    'completed',
  );
  const workers = await allServe();
  assert.ok(!workers.some(({ pid }) => pid === home.pid));
  await notebook.close();
});

test('sessions of a worker are served again within a second of its death', async (t) => {
  const outagesMs: number[] = [];
  // The best time shows the server's own speed, and the others the load of the machine.
  while (!outagesMs.some((ms) => ms < 1000)) {
    assert.ok(outagesMs.length < 20, `served again after ${outagesMs.map(Math.round).join(', ')} ms`);
    await allServe();
    const notebook = await openNotebook(server, { a: 'x = 1' });
    const home = homeOf(notebook.id);
    const killedAt = performance.now();
    process.kill(home.pid, 'SIGKILL');
    await answered('the session is served', () => statusOf(notebook.id));
    await answered('a notebook is created', () => server.client.notebooks.create({}));
    outagesMs.push(performance.now() - killedAt);
    await answered('the session is closed', () => notebook.close());
  }
  t.diagnostic(JSON.stringify(outagesMs));
});

test('the log that a worker returns contains the lines of the primary and of the other workers', async () => {
  await allServe();
  const notebook = await openNotebook(server, { a: 'x = 1' }); // workers that started earlier kernels may have ended since
  const { items } = await server.client.serverLog();
  await notebook.close();
  const messages = items.map((item) => (JSON.parse(item) as { msg: string }).msg);
  assert.ok(messages.includes('a worker has ended; others take over its slots'), 'the primary says that');
  assert.ok(messages.includes('a kernel has started'), 'workers say that');
});

test('a stopped worker is killed and replaced, and delays requests only briefly', async () => {
  const [victim] = await allServe();
  process.kill(victim!.pid, 'SIGSTOP');
  await gone([victim!]);
  await answered('a request is answered', () => server.client.notebooks.create({}));
  await allServe();
  const line = server.log.findLast(({ msg }) => msg.startsWith('a worker has ended'));
  assert.equal(line?.because, 'it was stopped by a signal');
});

test('a server continues when all of its workers have ended', async () => {
  for (const { pid } of await allServe()) process.kill(pid, 'SIGKILL');
  await answered('a notebook is created', () => server.client.notebooks.create({}));
});

test('no connection between workers passes through the primary', async () => {
  await allServe();
  await Promise.all(Array.from({ length: 20 }, () => server.client.notebooks.create({})));
  const ownPaths = readFileSync('/proc/net/unix', 'latin1')
    .split('\n')
    .map((line) => line.split(/\s+/))
    .filter(([, , , , , , inode]) => socketsOf(server.pid).has(inode));
  assert.deepEqual(
    ownPaths.filter(([, , , , , , , path]) => path?.includes('peer-')),
    [],
  );
});

test('a stopped primary delays no request, and readyz warns until the primary continues', async () => {
  await allServe();
  const isWarned = async () =>
    (await server.client.readiness()).warnings?.some((text) => text.startsWith('The primary process')) ??
    false;
  assert.equal(await isWarned(), false);
  process.kill(server.pid, 'SIGSTOP');
  try {
    await eventually('a warning', isWarned);
    await server.client.notebooks.create({});
  } finally {
    process.kill(server.pid, 'SIGCONT');
  }
  await eventually('no warning', async () => !(await isWarned()));
});

test('SIGHUP replaces the workers one after the other while requests are answered', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1' });
  const old = await allServe();
  process.kill(server.pid, 'SIGHUP');
  let isOver = false;
  let created = 0;
  const asking = (async () => {
    while (!isOver) {
      await answered('a notebook is created', () => server.client.notebooks.create({}));
      created++;
    }
  })();
  await gone(old);
  isOver = true;
  await asking;
  assert.ok(created > 0);
  const workers = await allServe();
  assert.deepEqual(
    workers.filter(({ pid }) => old.some((one) => one.pid === pid)),
    [],
  );
  await answered('the session is ready again', async () => (await statusOf(notebook.id)) === 'ready');
  assert.equal((await notebook.run(['a'])).status, 'completed');
});

test('replacing the workers does not wait for TROUPE_DRAIN_S, and /healthz and /readyz do not change meanwhile', async (t) => {
  const own = await startChildServer(t, { TROUPE_WORKERS: '2', TROUPE_DRAIN_S: '600' });
  const kept = Array.from({ length: 4 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  t.after(() => {
    for (const agent of kept) agent.destroy();
  });
  const answers = new Set<string>();
  const ask = async (path: string, agent: Agent | false) => {
    const sent = get(`${own.baseUrl}${path}`, { agent });
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    answers.add(`${path} ${response.statusCode}`);
    response.resume();
    await once(response, 'end');
  };
  const askAll = () =>
    Promise.allSettled(
      ['/healthz', '/readyz'].flatMap((path) => [false as const, ...kept].map((agent) => ask(path, agent))),
    );
  await askAll();
  process.kill(own.pid, 'SIGHUP');
  // A kept connection ends with its worker; that is not an answer.
  await eventually('all workers are replaced', async () => {
    await askAll();
    return own.log.some(({ msg }) => msg === 'workers are replaced no longer');
  });
  assert.deepEqual(answers, new Set(['/healthz 200', '/readyz 200']));
});

/** Begins uploads that do not end, at least one in each worker: the drain of a worker then takes a second. */
async function holdUploads(t: TestContext, { baseUrl, log }: ChildServer, workers: number): Promise<void> {
  const { hostname, port } = new URL(baseUrl);
  const caller = `authorization: Bearer ${OWNER.token}\r\nservice-workspace-id: ${OWNER.workspaceId}`;
  const holding = new Set<unknown>();
  for (let count = 0; holding.size < workers; count++) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined); // the worker is killed
    const requestId = `upload-${count}`;
    socket.write(`GET /api/v3/me HTTP/1.1\r\nhost: a\r\n${caller}\r\nx-request-id: ${requestId}\r\n\r\n`);
    const line = await eventually('the request is logged', () =>
      log.find(({ request }) => Object(request).requestId === requestId),
    );
    holding.add(line.worker);
    socket.write(
      `PUT /api/v3/files/${requestId} HTTP/1.1\r\nhost: a\r\n${caller}\r\ncontent-length: 1000000\r\n\r\n`,
    );
    const timer = setInterval(() => socket.write('a'), 1000); // a connection without a byte is closed
    t.after(() => {
      clearInterval(timer);
      socket.destroy();
    });
  }
}

test('the death of a worker during its replacement is logged, and the next orderly stop reports no loss', async (t) => {
  const own = await startChildServer(t, { TROUPE_WORKERS: '2', TROUPE_LOG_LEVEL: 'debug' });
  await holdUploads(t, own, 2);
  process.kill(own.pid, 'SIGHUP');
  const drains = await eventually('a worker drains', () =>
    own.log.find(({ msg }) => msg === 'the worker drains'),
  );
  const draining = workersOf(own.pid).find(({ number }) => number === drains.worker);
  assert.ok(draining !== undefined);
  process.kill(draining.pid, 'SIGKILL');
  const isDone = () => own.log.some(({ msg }) => msg === 'workers are replaced no longer');
  await eventually('all workers are replaced', isDone);
  const errors = own.log.filter(({ level }) => level === 'error').map(({ msg }) => msg);
  assert.deepEqual(errors, ['a worker that was being replaced did not stop in order']);
  assert.deepEqual(await own.end('SIGTERM'), { code: 0, signal: null });
});

test('every notebook can be changed after a new worker was killed before the worker that it replaces has ended', async (t) => {
  const own = await startChildServer(t, { TROUPE_WORKERS: '2', TROUPE_LOG_LEVEL: 'debug' });
  const notebooks = await Promise.all(Array.from({ length: 16 }, () => own.client.notebooks.create({})));
  await holdUploads(t, own, 2);
  process.kill(own.pid, 'SIGHUP');
  await eventually('a worker drains', () => own.log.find(({ msg }) => msg === 'the worker drains'));
  const heir = workersOf(own.pid).find(({ number }) => number === 3);
  assert.ok(heir !== undefined);
  process.kill(heir.pid, 'SIGKILL');
  const isDone = () => own.log.some(({ msg }) => msg === 'workers are replaced no longer');
  await eventually('the replacement is over', isDone);
  for (const { id, updatedAt } of notebooks) {
    const change = { expectedUpdatedAt: updatedAt, title: 'changed' };
    await answered(`the notebook ${id} is changed`, () => own.client.notebooks.update(id, change));
  }
});

test('the command line of a worker shows only its number', async () => {
  for (const { pid } of await allServe()) {
    const [, , argument, number, ...rest] = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0');
    assert.equal(argument, '--worker');
    assert.match(number!, /^\d+$/);
    assert.deepEqual(rest, ['']);
    const names = (of: number) =>
      readFileSync(`/proc/${of}/environ`, 'latin1')
        .split('\0')
        .map((entry) => entry.split('=')[0]!);
    const own = names(pid).filter((name) => !names(server.pid).includes(name));
    assert.deepEqual(own.sort(), ['NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE', 'NODE_UNIQUE_ID']);
  }
});

test('SIGTERM drains all workers, and the server exits 0 and leaves no process', async () => {
  await openNotebook(server, { a: 'x = 1' });
  const processes = descendants(server.pid);
  assert.deepEqual(await server.end('SIGTERM'), { code: 0, signal: null });
  await gone(processes);
  const last = server.log.slice(-1).map(({ msg }) => msg);
  assert.deepEqual(last, ['the server has stopped']);
});

test('kill -9 of the primary ends all processes, even a stopped worker, and the next start finds all acknowledged records', async (t) => {
  const killed = await startChildServer(t, SETTINGS);
  const notebook = await openNotebook(killed, { a: 'import time\nwhile True: time.sleep(1)' });
  await notebook.submit(['a']);
  const processes = descendants(killed.pid);
  process.kill(workersOf(killed.pid)[0]!.pid, 'SIGSTOP');
  await killed.end('SIGKILL');
  await gone(processes);
  const after = await killed.again();
  assert.equal((await after.client.notebooks.get(notebook.id)).id, notebook.id);
});

test('a data directory stays claimed as long as a process with the inherited claim lives', async (t) => {
  const root = temporaryDirectory(t);
  const directory = await DataDirectory.claim(root);
  const orphan = spawn('sleep', ['600'], {
    stdio: ['ignore', 'ignore', 'ignore', directory.claimDescriptor],
  });
  const ended = once(orphan, 'exit');
  t.after(() => orphan.kill('SIGKILL'));
  await once(orphan, 'spawn');
  directory[Symbol.dispose]();
  assert.equal(await DataDirectory.isClaimed(root), true);
  await assert.rejects(DataDirectory.claim(root), /Another Troupe server is using/);
  orphan.kill('SIGKILL');
  await ended;
  assert.equal(await DataDirectory.isClaimed(root), false);
});
