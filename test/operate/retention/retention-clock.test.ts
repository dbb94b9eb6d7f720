import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { firstIdAt, type WorkspaceId } from '#src/base/ids.ts';
import { createClient } from '#src/contract/client/client.ts';
import { Troupe } from '#src/contract/client/troupe.ts';
import { RetentionClock } from '#src/operate/retention/retention-clock.ts';
import { notebookVersions } from '#storage/records/notebooks.ts';
import { runIndex } from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';
import { startChildServer, startServerProcess } from '#test/support/child-server.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';
import { temporaryDirectory, temporaryStore } from '#test/support/store/temporary-store.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW = Date.now();

/** A store with a record of this moment, and the clock of retention in a process whose clock shows another time. */
async function open(t: TestContext) {
  const { store } = await temporaryStore(t);
  const held: (number | undefined)[] = [];
  const clockOf = (startedAtMs: number) =>
    new RetentionClock(store, (aheadMs) => held.push(aheadMs), startedAtMs);
  return { store, held, clockOf };
}

async function addRun(store: Store, atMs = NOW): Promise<void> {
  const entry = { sessionId: 'nb_1', kind: 'notebook', status: 'completed' };
  // `newId` never goes back in time, so the id is made by hand.
  const id = firstIdAt('run', atMs) + '0'.repeat(16);
  store.write((tx) => tx.put(runIndex, entry as never, 'ws_1' as WorkspaceId, id));
  await store.durable();
}

test('a clock that is more than two days past the newest record and the last sweep deletes nothing until it is confirmed', async (t) => {
  const { store, held, clockOf } = await open(t);
  assert.equal(await clockOf(NOW).check(NOW), true, 'a store without records has nothing to lose');
  await addRun(store);
  const ahead = NOW + 100 * DAY_MS;
  const clock = clockOf(ahead);
  assert.equal(await clock.check(ahead), false);
  assert.equal(clock.isHeld, true);
  assert.deepEqual(held, [100 * DAY_MS]);
  // Another process, whose start is later than records of the clock that is ahead, comes to the same result.
  assert.equal(await clockOf(ahead + HOUR_MS).check(ahead + HOUR_MS), false);
  assert.equal(held.length, 1, 'the log has one line');
  await clock.confirm(ahead + 2 * HOUR_MS);
  assert.equal(clock.isHeld, false);
  assert.equal(await clock.check(ahead + 3 * HOUR_MS), true);
});

test('a corrected clock is trusted again at once', async (t) => {
  const { store, clockOf } = await open(t);
  assert.equal(await clockOf(NOW).check(NOW), true);
  await addRun(store);
  assert.equal(await clockOf(NOW + 100 * DAY_MS).check(NOW + 100 * DAY_MS), false);
  assert.equal(await clockOf(NOW + HOUR_MS).check(NOW + HOUR_MS), true);
});

test('without an earlier sweep the newest record decides, and records that the check of the clock makes prove nothing', async (t) => {
  const { store, clockOf } = await open(t);
  await addRun(store);
  const ahead = NOW + 100 * DAY_MS;
  assert.equal(
    await clockOf(NOW - HOUR_MS).check(ahead),
    false,
    'the run is later than the start of the process',
  );
  const other = await open(t);
  await addRun(other.store);
  assert.equal(await other.clockOf(NOW + HOUR_MS).check(NOW + HOUR_MS), true);
});

test('records from after a jump of the clock do not prove that the clock is right, even in a process that starts later', async (t) => {
  const { store, held, clockOf } = await open(t);
  await addRun(store);
  assert.equal(await clockOf(NOW + HOUR_MS).check(NOW + HOUR_MS), true);
  const ahead = NOW + 100 * DAY_MS;
  await addRun(store, ahead);
  assert.equal(await clockOf(ahead + HOUR_MS).check(ahead + HOUR_MS), false);
  assert.equal(held.length, 1);
});

test('a clock is trusted after a long time without sweeps when records fill that time', async (t) => {
  const { store, clockOf } = await open(t);
  assert.equal(await clockOf(NOW).check(NOW), true);
  for (let day = 0; day <= 100; day += 1.5) await addRun(store, NOW + day * DAY_MS);
  const later = NOW + 100 * DAY_MS;
  assert.equal(await clockOf(later + HOUR_MS).check(later + HOUR_MS), true);
});

test('with a clock that is ahead, no versions of notebooks without runs are deleted, and no runs', async (t) => {
  const { store, clockOf } = await open(t);
  const at = new Date(NOW).toISOString();
  const version = { updatedAt: at, title: null, cellCount: 0, replacedAt: at, bytes: 2 };
  store.write((tx) => tx.put(notebookVersions, [version], 'ws_1', 'nb_1'));
  await store.durable();
  const ahead = NOW + 100 * DAY_MS;
  assert.equal(await clockOf(ahead).check(ahead), false);
});

test('a clock that is ahead is trusted after the server has run with it for two days, without pauses', async (t) => {
  const { store, clockOf } = await open(t);
  assert.equal(await clockOf(NOW).check(NOW), true);
  await addRun(store);
  let now = NOW + 100 * DAY_MS;
  const clock = clockOf(now);
  assert.equal(await clock.check(now), false);
  const checkAfter = (hours: number) => {
    now += hours * HOUR_MS;
    return clock.check(now);
  };
  for (let hour = 0; hour < 24; hour++) assert.equal(await checkAfter(1), false);
  assert.equal(await checkAfter(47), false, 'the server was off');
  for (let hour = 0; hour < 21; hour++) assert.equal(await checkAfter(1), false);
  assert.equal(await checkAfter(1), true);
});

test('a server that starts with a clock 100 days ahead keeps its runs and warns, and deletes them once the clock is confirmed', async (t) => {
  const shift = join(temporaryDirectory(t), 'clock.mjs');
  writeFileSync(
    shift,
    `const { now } = Date, ahead = 100 * 86_400_000, Original = Date;
     globalThis.Date = class extends Original {
       constructor(...args) { if (args.length === 0) super(now() + ahead); else super(...args); }
       static now() { return now() + ahead; }
     };`,
  );
  const first = await startChildServer(t);
  const troupe = new Troupe({
    baseUrl: first.baseUrl,
    accessToken: OWNER.token,
    workspaceId: OWNER.workspaceId,
  });
  const notebook = await troupe.notebooks.create({ serialization: { cells: [{ cell_id: 'a', code: '1' }] } });
  const session = await troupe.open(notebook);
  const { id } = await session.run('a').result();
  await first.end('SIGTERM');

  const settings = { TROUPE_KEEP_RUNS_DAYS: '90', NODE_OPTIONS: `--import ${pathToFileURL(shift)}` };
  const server = await startServerProcess(first.dataDir, {
    ...SETTINGS,
    ...pythonOfTests(),
    TROUPE_KERNEL_NODES: 'none',
    ...settings,
  });
  t.after(() => server.end('SIGKILL'));
  const client = createClient({
    baseUrl: server.baseUrl,
    accessToken: OWNER.token,
    workspaceId: OWNER.workspaceId,
  });
  const warning = await eventually('the warning', async () =>
    (await client.readiness()).warnings?.find((text) => text.includes('troupe retention confirm')),
  );
  assert.match(warning, /^The clock of this machine is more than 48 hours past the newest record/);
  assert.equal((await client.runs.get(id)).status, 'completed');
  assert.ok(
    server.log.some(({ level, msg }) => level === 'warn' && msg.startsWith('the clock seems to be ahead')),
  );
  await client.retention.confirmClock();
  await eventually('the run is deleted', async () =>
    client.runs.get(id).then(
      () => false,
      ({ code }) => code === 'not_found' || assert.fail(code),
    ),
  );
  assert.equal((await client.readiness()).warnings, undefined);
});
