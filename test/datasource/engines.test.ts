/** The processes of embedded databases: how long each lives, and its rights. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { embeddedLink } from '#src/datasource/embedded/embedded-link.ts';
import type { EnginePort } from '#src/datasource/embedded/engine-port.ts';
import { Engines } from '#src/datasource/embedded/engines.ts';
import { descriptorsOf } from '#test/escape/process-table.ts';
import { eventually, UNSEEN } from '#test/support/processes.ts';
import { writeSqlite } from '#test/support/stand-ins/python-databases.ts';
import { startEngine } from './engine-host.ts';
import type { Owner } from './listening.ts';
import { ask, probeFixture } from './probe-fixture.ts';

function fixture(owner: Owner) {
  const { filesDirectory } = probeFixture(owner);
  writeFileSync(join(filesDirectory, 'a.csv'), 'x\n1\n');
  const started: EnginePort[] = [];
  const engines = new Engines((launch) => {
    const engine = startEngine(launch);
    started.push(engine);
    return engine;
  });
  owner.after(async () => engines[Symbol.dispose]());
  const open = (kind: 'files' | 'sqlite', path: string) =>
    embeddedLink({ kind, filesDirectory, path }, engines);
  return { engines, started, filesDirectory, open, session: open('files', '.') };
}

/** Whether the process is gone, or is dead and not reaped yet. */
const isGone = (engine: EnginePort | undefined) => () => {
  try {
    return readFileSync(`/proc/${engine?.pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return true;
  }
};

test('statements on one database share a process, one after the other', async (t) => {
  const { session, started } = fixture(t);
  for (let i = 0; i < 3; i++) assert.deepEqual((await ask(session, 'SELECT * FROM a')).rows, [[1]]);
  assert.equal(started.length, 1);
});

test('simultaneous statements have a process each', async (t) => {
  const { session, started } = fixture(t);
  await Promise.all([ask(session, 'SELECT * FROM a'), ask(session, 'SELECT * FROM a')]);
  assert.equal(new Set(started.map(({ pid }) => pid)).size, 2);
});

test('a workspace has at most eight working processes, and further statements wait for one of these processes', async (t) => {
  const { session, started, engines, filesDirectory } = fixture(t);
  const launch = { kind: 'files', filesDirectory, path: '.', mode: 'read' } as const;
  const { signal } = new AbortController();
  const taken = await Promise.all(Array.from({ length: 8 }, () => engines.take(launch, signal)));
  const waiting = ask(session, 'SELECT * FROM a');
  const abandoned = new AbortController();
  const given = engines.take(launch, abandoned.signal);
  abandoned.abort(new Error('the caller has left'));
  await assert.rejects(given, /the caller has left/);
  assert.equal(started.length, 8);
  engines.give(launch, taken[0]!, true);
  assert.deepEqual((await waiting).rows, [[1]]);
  assert.equal(started.length, 8);
  for (const engine of taken.slice(1)) engines.give(launch, engine, true);
  const other = { ...launch, path: 'a.csv' };
  engines.give(other, await engines.take(other, signal), true);
  assert.equal(started.length, 9);
  assert.equal(started.filter(({ ended }) => !ended).length, 8, 'one that waited made room');
});

test('at most four of the working processes serve one kernel, and kernels share no process', async (t) => {
  const { started, engines, filesDirectory } = fixture(t);
  const launch = { kind: 'files', filesDirectory, path: '.', mode: 'read', memoryShare: 'a' } as const;
  const { signal } = new AbortController();
  const taken = await Promise.all(Array.from({ length: 4 }, () => engines.take(launch, signal)));
  let isGiven = false;
  const fifth = engines.take(launch, signal).then((engine) => {
    isGiven = true;
    return engine;
  });
  const other = { ...launch, memoryShare: 'b' };
  const ofOther = await engines.take(other, signal);
  assert.equal(isGiven, false);
  engines.give(launch, taken[0]!, true);
  engines.give(other, ofOther, true);
  assert.equal(await fifth, taken[0]);
  engines.give(other, await engines.take(other, signal), true);
  assert.equal(started.length, 5);
});

test('a process keeps nothing of the workspace open between two statements on files', {
  skip: UNSEEN,
}, async (t) => {
  const { session, started, filesDirectory } = fixture(t);
  await ask(session, 'SELECT * FROM a');
  // With namespaces, the forked process is the first one in them, and the engine is its child.
  const pid = started[0]?.pid;
  const pids = [pid, ...readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)];
  const open = () => pids.flatMap((one) => [...descriptorsOf(Number(one)).values()]);
  await eventually('it has closed them', () => !open().some((path) => path.startsWith(filesDirectory)));
});

test('the second of two statements sees data that were written between them', async (t) => {
  const { session, filesDirectory } = fixture(t);
  for (let rows = 1; rows < 4; rows++) {
    writeFileSync(join(filesDirectory, 'a.csv'), `x\n${'1\n'.repeat(rows)}`);
    assert.deepEqual((await ask(session, 'SELECT count(*) FROM a')).rows, [[rows]]);
  }
});

test('a process opens its database again after the file was replaced', async (t) => {
  const { open, started, filesDirectory } = fixture(t);
  const at = (name: string) => join(filesDirectory, name);
  writeSqlite(at('a.sqlite'), 'CREATE TABLE t (x)');
  writeSqlite(at('b.sqlite'), 'CREATE TABLE t (x)', 'INSERT INTO t VALUES (7)');
  const session = open('sqlite', 'a.sqlite');
  assert.deepEqual((await ask(session, 'SELECT * FROM t')).rows, []);
  renameSync(at('b.sqlite'), at('a.sqlite'));
  assert.deepEqual((await ask(session, 'SELECT * FROM t')).rows, [[7]]);
  assert.equal(started.length, 1);
});

test('temporary objects of a statement are gone for the next statement', async (t) => {
  const { open, filesDirectory } = fixture(t);
  writeSqlite(join(filesDirectory, 'a.sqlite'), 'CREATE TABLE t (x)');
  const session = open('sqlite', 'a.sqlite');
  const options = { readOnly: false };
  await ask(session, 'CREATE TEMP TABLE mine AS SELECT 1 AS x', options);
  await assert.rejects(ask(session, 'SELECT * FROM mine', options), { category: 'query' });
  await ask(session, 'BEGIN', options);
  await ask(session, 'INSERT INTO t VALUES (1)', options);
  assert.deepEqual((await ask(session, 'SELECT * FROM t')).rows, [[1]]);
});

test('a process that died while it was idle is not used again', async (t) => {
  const { session, started } = fixture(t);
  await ask(session, 'SELECT * FROM a');
  process.kill(Number(started[0]?.pid), 'SIGKILL');
  await eventually('its end', () => started[0]?.ended === true);
  assert.deepEqual((await ask(session, 'SELECT * FROM a')).rows, [[1]]);
  assert.equal(started.length, 2);
});

test('a cancelled statement ends its process', async (t) => {
  const { session, started } = fixture(t);
  await ask(session, 'SELECT * FROM a');
  const stop = new AbortController();
  const endless = ask(session, 'SELECT count(*) FROM range(1000000000) a, range(1000000000) b', {
    signal: stop.signal,
  });
  setImmediate(() => stop.abort());
  await assert.rejects(endless);
  await eventually('the end of the process', isGone(started[0]));
});

test('at most sixteen idle engines are kept', async (t) => {
  const { engines, started, filesDirectory } = fixture(t);
  for (let i = 0; i < 18; i++) {
    const folder = join(filesDirectory, `${i}`); // the engine of another workspace, which has a limit as well
    mkdirSync(folder);
    const launch = { kind: 'sqlite', filesDirectory: folder, path: 'none', mode: 'read' } as const;
    const engine = await engines.take(launch, new AbortController().signal);
    await assert.doesNotReject(engine.ask({ op: 'open' }));
    engines.give(launch, engine, true);
  }
  assert.deepEqual(
    started.map(({ ended }) => ended),
    [true, true, ...Array.from({ length: 16 }, () => false)],
  );
});

test('no process is left when the server ends, and a later statement keeps no process', async (t) => {
  const { engines, session, started } = fixture(t);
  await ask(session, 'SELECT * FROM a');
  engines[Symbol.dispose]();
  await assert.rejects(ask(session, 'SELECT * FROM a'));
  for (const engine of started) await eventually('the end of all of them', isGone(engine));
});
