// tier: whole, because it kills servers
/** Large stores that the next release converts: the conversion survives kills, and the service manager waits for it. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { startServerProcess } from '#test/support/child-server.ts';
import { eventually } from '#test/support/processes.ts';
import { pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';
import { receiveNotices } from '#test/support/stand-ins/notify-receiver.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';
import { killedUpgrade } from './killed-upgrade.ts';
import { NEXT_RELEASE, writeRuns } from './many-runs.ts';

test('a conversion that is killed repeatedly finishes, resumes after its last commit, and reports its progress', async (t) => {
  const lines = await killedUpgrade({ dataDir: temporaryDirectory(t), runs: 20_000, kills: 4 });
  for (const { done, total, percent, recordsPerS } of lines) {
    assert.ok(Number(done) <= Number(total));
    assert.equal(percent, Number(total) === 0 ? 100 : Math.floor((Number(done) / Number(total)) * 100));
    assert.ok(Number(recordsPerS) >= 0);
  }
  assert.equal(lines.at(-1)?.percent, 100);
});

for (const workers of ['1', '2'])
  test(`the service manager waits as long as a conversion takes, with TROUPE_WORKERS=${workers}`, async (t) => {
    const dataDir = temporaryDirectory(t);
    await writeRuns(dataDir, 100);
    const { path, notices } = await receiveNotices(t);
    const settings = { ...SETTINGS, ...pythonOfTests(), TROUPE_WORKERS: workers, NOTIFY_SOCKET: path };
    const server = await startServerProcess(
      dataDir,
      { ...settings, ...NEXT_RELEASE.env },
      NEXT_RELEASE.command,
    );
    t.after(() => server.end('SIGKILL'));
    await eventually('READY is sent', () => notices.some(({ READY }) => READY === '1'));
    const [first] = notices;
    assert.match(
      String(first?.STATUS),
      /^The store is being converted from format 1 to 2: 0 of \d+ records \(0 %\)\.$/,
    );
    assert.ok(Number(first?.EXTEND_TIMEOUT_USEC) > 60_000_000);
    assert.deepEqual(
      new Set(notices.map(({ pid }) => pid)),
      new Set([server.pid]),
      'only the main process is listened to',
    );
    await server.end('SIGTERM');
    await eventually('STOPPING is sent', () => notices.some(({ STOPPING }) => STOPPING === '1'));
  });
