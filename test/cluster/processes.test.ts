/** A server with several workers, some of which are killed, stopped or replaced. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { slotOf } from '#src/cluster/slots.ts';
import { DataDirectory } from '#storage/data-directory.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import {
  descendants,
  eventually,
  gone,
  kernelsOf,
  type ProcessFact,
  workersOf,
} from '#test/support/processes.ts';
import { OWNER } from '#test/support/server-fixture.ts';
import { temporaryDirectory } from '#test/support/temporary-store.ts';

const SIZE = 3;
const SETTINGS = { TROUPE_WORKERS: String(SIZE) };

const server = await startChildServer(test, SETTINGS);

/** Repeats a request until it is answered, as a client does that a worker's end has cut off. */
function answered<T>(what: string, ask: () => Promise<T>, withinMs?: number): Promise<T> {
  return eventually(what, () => ask().catch(() => undefined), withinMs);
}

function allServe(): Promise<readonly ProcessFact[]> {
  return eventually('all workers are there', () => {
    const workers = workersOf(server.pid);
    return workers.length === SIZE && workers;
  });
}

function statusOf(id: string): Promise<string> {
  return server.client.notebookSessions.get(id).then(({ status }) => status);
}

test('kill -9 of a worker ends its kernels, and its sessions come back at another one', async () => {
  const notebook = await openNotebook(server, { a: 'x = 41' });
  const [first, ...others] = kernelsOf(server.pid);
  assert.ok(first !== undefined);
  // The slots are dealt out in the order in which the workers were started.
  const home = workersOf(server.pid)[slotOf(OWNER.workspaceId) % SIZE]!;
  process.kill(home.pid, 'SIGKILL');
  await answered('a request is answered', () => server.client.notebooks.get(notebook.id), 3_000);
  await gone([first, ...others], 5_000);
  await answered('the session is ready again', async () => (await statusOf(notebook.id)) === 'ready');
  assert.equal(
    (await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: 'x = 42' }] })).status,
    'completed',
  );
  const workers = await allServe();
  assert.ok(!workers.some(({ pid }) => pid === home.pid));
  await notebook.close();
});

test('a worker that is stopped is killed and replaced, and holds up nobody for long', async () => {
  const [victim] = await allServe();
  process.kill(victim!.pid, 'SIGSTOP');
  await gone([victim!], 5_000);
  await answered('a request is answered', () => server.client.notebooks.create({}), 5_000);
  await allServe();
  const line = server.log.findLast(({ msg }) => msg.startsWith('a worker has ended'));
  assert.equal(line?.because, 'it was stopped by a signal');
});

test('SIGHUP replaces the workers one after the other while requests are answered', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1' });
  const old = await allServe();
  process.kill(server.pid, 'SIGHUP');
  let isOver = false;
  let created = 0;
  const asking = (async () => {
    while (!isOver) {
      await answered('a notebook is created', () => server.client.notebooks.create({}), 5_000);
      created++;
    }
  })();
  await gone(old, 60_000);
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

test('what a worker was started with says nothing but its number', async () => {
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
  await gone(processes, 1_000);
  const last = server.log.slice(-1).map(({ msg }) => msg);
  assert.deepEqual(last, ['the server has stopped']);
});

test('kill -9 of the primary ends everything, a stopped worker too, and the next start finds what was acknowledged', async (t) => {
  const killed = await startChildServer(t, SETTINGS);
  const notebook = await openNotebook(killed, { a: 'import time\nwhile True: time.sleep(1)' });
  await notebook.submit(['a']);
  const processes = descendants(killed.pid);
  process.kill(workersOf(killed.pid)[0]!.pid, 'SIGSTOP');
  await killed.end('SIGKILL');
  await gone(processes, 2_000);
  const after = await killed.again();
  assert.equal((await after.client.notebooks.get(notebook.id)).id, notebook.id);
});

test('a data directory stays claimed as long as a process lives that has inherited the claim', async (t) => {
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
