/** The processes that are started ahead for embedded databases. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { embeddedSession } from '#src/datasource/embedded/embedded-session.ts';
import type { EngineProcess } from '#src/datasource/embedded/engine-process.ts';
import { Engines } from '#src/datasource/embedded/engines.ts';
import { eventually } from '#test/support/processes.ts';
import type { Owner } from './listening.ts';
import { ask, probeFixture } from './probe-fixture.ts';

class WatchedEngines extends Engines {
  readonly taken: EngineProcess[] = [];
  override take(kind: Parameters<Engines['take']>[0]): EngineProcess {
    const engine = super.take(kind);
    this.taken.push(engine);
    return engine;
  }
}

function fixture(owner: Owner) {
  const { filesDirectory } = probeFixture(owner);
  writeFileSync(join(filesDirectory, 'a.csv'), 'x\n1\n');
  const engines = new WatchedEngines();
  owner.after(async () => engines[Symbol.dispose]());
  const session = embeddedSession({ kind: 'files', filesDirectory, path: '.' }, engines);
  return { engines, session, filesDirectory };
}

/** Ids of the processes that this one has started. */
function children(): string[] {
  return readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').split(' ').filter(Boolean);
}

const isGone = (engine: EngineProcess) => () => readdirSync('/proc').includes(String(engine.pid)) === false;

test('each statement has a process of its own, which ends with it', async (t) => {
  const { engines, session } = fixture(t);
  for (let i = 0; i < 3; i++) assert.deepEqual((await ask(session, 'SELECT * FROM a')).rows, [[1]]);
  assert.equal(new Set(engines.taken.map(({ pid }) => pid)).size, 3);
  for (const engine of engines.taken) await eventually('the end of the process', isGone(engine));
});

test('the next one is there already, with an empty environment and nothing of the workspace open', async (t) => {
  const { engines, session, filesDirectory } = fixture(t);
  await ask(session, 'SELECT * FROM a');
  const next = engines.take('files');
  t.after(() => next[Symbol.dispose]());
  engines.prepare('files');
  assert.equal(next.ended, false);
  const of = (file: string) => `/proc/${next.pid}/${file}`;
  await next.ask({ type: 'prepare', library: 'duckdb' });
  assert.deepEqual(
    readFileSync(of('environ'), 'utf8')
      .split('\0')
      .filter((entry) => entry !== '' && !entry.startsWith('NODE_CHANNEL_')),
    [],
  );
  const open = readdirSync(of('fd')).map((name) => readlinkSync(of(`fd/${name}`)));
  assert.deepEqual(
    open.filter((path) => path.startsWith(filesDirectory)),
    [],
  );
});

test('what was written after the next one was started is seen by it', async (t) => {
  const { session, filesDirectory } = fixture(t);
  for (let rows = 1; rows < 4; rows++) {
    writeFileSync(join(filesDirectory, 'a.csv'), `x\n${'1\n'.repeat(rows)}`);
    assert.deepEqual((await ask(session, 'SELECT count(*) FROM a')).rows, [[rows]]);
  }
});

test('one that died while it waited is not given out', async (t) => {
  const { engines, session } = fixture(t);
  await ask(session, 'SELECT * FROM a');
  for (const engine of engines.taken) await eventually('the end of the process', isGone(engine));
  const [waiting] = children();
  process.kill(Number(waiting), 'SIGKILL');
  await eventually('its end', () => children().length === 0);
  assert.deepEqual((await ask(session, 'SELECT * FROM a')).rows, [[1]]);
});

test('none is left when the server ends, and none is started after that', async (t) => {
  const { engines, session } = fixture(t);
  await ask(session, 'SELECT * FROM a');
  const waiting = engines.take('files');
  engines.prepare('files');
  engines[Symbol.dispose]();
  engines.prepare('files');
  waiting[Symbol.dispose]();
  await eventually('the end of all of them', () => children().length === 0);
});
