// tier: whole, because it lets Prometheus evaluate rules over time
/**
 * The alert rules fire in each state that ends a service, with the metrics that a real server has in that state, and in no other
 * state.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { WARNING_KINDS, type WarningKind } from '#src/base/log/operator-warning.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { eventually, workersOf } from '#test/support/processes.ts';
import { firingAlerts, noPrometheus, seriesOf, startPrometheus } from '#test/support/prometheus.ts';
import { damage } from '#test/support/store/damage.ts';
import { fillDisk, noSmallDisk, smallDisk } from '#test/support/store/small-disk.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const ALERT_OF: Readonly<Record<WarningKind, string>> = {
  read_only: 'TroupeReadOnly',
  disk_low: 'TroupeDiskLow',
  disk_full: 'TroupeDiskFull',
  inodes_low: 'TroupeInodesLow',
  store_slow: 'TroupeStoreStuck',
  backup_failed: 'TroupeBackupFails',
  backup_silent: 'TroupeBackupSilent',
  clock_ahead: 'TroupeClockAhead',
  audit_not_forwarded: 'TroupeAuditNotForwarded',
  records_damaged: 'TroupeRecordsDamaged',
  commit_lost: 'TroupeCommitLost',
  workers_missing: 'TroupeWorkersSilent',
  primary_silent: 'TroupePrimarySilent',
  nodes_missing: 'TroupeNodesMissing',
  node_refused: 'TroupeNodeRefused',
  nodes_not_started: 'TroupeNodesNotStarted',
};
const skip = noPrometheus;

test('a healthy server that makes backups fires no alert, and each kind of warning fires its own alert', {
  skip,
}, async (t) => {
  const server = await startChildServer(t, { TROUPE_BACKUP_DIR: join(temporaryDirectory(t), 'backups') });
  const isBackedUp = (line: string) => /^troupe_backup_last_success_timestamp_seconds[^ ]* [1-9]/.test(line);
  const series = await eventually('a backup', async () => {
    const lines = await seriesOf(server);
    return lines.some(isBackedUp) && lines;
  });
  assert.deepEqual(firingAlerts(t, series), []);
  for (const kind of WARNING_KINDS) {
    const warned = series.map((line) => (line.includes(`kind="${kind}"`) ? line.replace(/ 0$/, ' 1') : line));
    assert.notDeepEqual(warned, series, kind);
    assert.deepEqual(firingAlerts(t, warned), [ALERT_OF[kind]]);
  }
});

test('failing and outdated backups fire an alert', { skip }, async (t) => {
  const inTheWay = join(temporaryDirectory(t), 'file');
  writeFileSync(inTheWay, '');
  const server = await startChildServer(t, { TROUPE_BACKUP_DIR: join(inTheWay, 'backups') });
  assert.deepEqual(firingAlerts(t, await seriesOf(server)), ['TroupeBackupFails', 'TroupeBackupOld']);
});

test('a backup that gets no more increments fires an alert', { skip }, async (t) => {
  const server = await startChildServer(t, {
    TROUPE_BACKUP_DIR: join(temporaryDirectory(t), 'backups'),
    TROUPE_BACKUP_INCREMENT_MIN: '1',
  });
  const last = /^(troupe_backup_last_increment_timestamp_seconds\S*) ([\d.e+]+)$/;
  const series = await eventually('a backup to which increments are added', async () => {
    const lines = await seriesOf(server);
    return lines.some((line) => last.test(line)) && lines;
  });
  assert.deepEqual(firingAlerts(t, series), []);
  const older = series.map((line) => line.replace(last, (_, name, at) => `${name} ${Number(at) - 1000}`));
  assert.deepEqual(firingAlerts(t, older), ['TroupeIncrementOld']);
});

test('a damaged record fires an alert after the record was read', { skip }, async (t) => {
  const first = await startChildServer(t);
  const { id } = await first.client.notebooks.create({
    serialization: { cells: [{ cell_id: 'a', code: '"here it breaks"' }] },
  });
  await first.end('SIGKILL');
  damage(join(first.dataDir, 'store', 'data.mdb'), 'here it breaks');
  const server = await first.again();
  await assert.rejects(server.client.notebooks.get(id), { code: 'record_damaged' });
  assert.deepEqual(firingAlerts(t, await seriesOf(server)), ['TroupeRecordsDamaged']);
});

test('workers and a primary that do not answer fire alerts', { skip }, async (t) => {
  const server = await startChildServer(t, { TROUPE_WORKERS: '3' });
  const [worker] = workersOf(server.pid);
  process.kill(server.pid, 'SIGSTOP');
  process.kill(worker!.pid, 'SIGKILL');
  const fired = await eventually(
    'both alerts',
    async () => {
      const alerts = await seriesOf(server).then(
        (series) => firingAlerts(t, series),
        () => [],
      );
      return alerts.length === 2 && alerts;
    },
    60_000,
  );
  assert.deepEqual(fired, ['TroupePrimarySilent', 'TroupeWorkersSilent']);
});

test('Prometheus accepts the rules and the metrics, and alerts when a disk is full and when a server is down', {
  skip: skip || noSmallDisk,
}, async (t) => {
  const disk = smallDisk(t, 96);
  const server = await startChildServer(t, {
    TROUPE_DATA_DIR: join(disk, 'data'),
    TROUPE_DISK_RESERVE_MB: '16',
    TROUPE_DISK_WARN_MB: '40',
  });
  const prometheus = await startPrometheus(t, server);
  await eventually('the first scrape', async () => {
    const { activeTargets } = await prometheus.read<{
      readonly activeTargets: readonly { readonly health: string; readonly lastError: string }[];
    }>('targets');
    for (const { lastError } of activeTargets) assert.equal(lastError, '');
    return activeTargets.length > 0 && activeTargets.every(({ health }) => health === 'up');
  });
  fillDisk(disk);
  assert.equal((await prometheus.alert('TroupeDiskFull')).state, 'firing');
  const { groups } = await prometheus.read<{
    readonly groups: readonly {
      readonly rules: readonly { readonly name: string; readonly lastError?: string }[];
    }[];
  }>('rules');
  for (const { name, lastError } of groups.flatMap(({ rules }) => rules))
    assert.equal(lastError, undefined, name);
  const series = await seriesOf(server);
  assert.deepEqual(firingAlerts(t, series), ['TroupeDiskFull']);
  await server.end('SIGKILL');
  await prometheus.alert('TroupeDown');
  assert.deepEqual(firingAlerts(t, ['up 0']), ['TroupeDown']);
});

test('jobs and hooks that are late or have paused themselves fire an alert each, and those that a person has paused none', {
  skip,
}, async (t) => {
  const server = await startChildServer(t, { TROUPE_WORKERS: '2' });
  const series = await seriesOf(server);
  const alertsWith = (metric: RegExp, value: number) => {
    const changed = series.map((line) => (metric.test(line) ? line.replace(/ 0$/, ` ${value}`) : line));
    assert.notDeepEqual(changed, series, String(metric));
    return firingAlerts(t, changed);
  };
  assert.deepEqual(alertsWith(/^troupe_jobs_overdue_seconds/, 60), []);
  assert.deepEqual(alertsWith(/^troupe_jobs_overdue_seconds/, 61), ['TroupeJobsLate']);
  assert.deepEqual(alertsWith(/^troupe_jobs\{.*"paused_by_itself"/, 1), ['TroupeJobsPaused']);
  assert.deepEqual(alertsWith(/^troupe_jobs\{.*"paused"/, 1), []);
  assert.deepEqual(alertsWith(/^troupe_hooks_overdue_seconds/, 60), []);
  assert.deepEqual(alertsWith(/^troupe_hooks_overdue_seconds/, 61), ['TroupeHooksLate']);
  assert.deepEqual(alertsWith(/^troupe_hooks\{.*"paused_by_itself"/, 1), ['TroupeHooksPaused']);
  assert.deepEqual(alertsWith(/^troupe_hooks\{.*"paused"/, 1), []);
});

test('a job that has failed fires an alert until it succeeds, and for six hours at most', {
  skip,
}, async (t) => {
  const series = await seriesOf(await startChildServer(t));
  const failing = /^troupe_jobs\{.*"failing"/;
  const failures = /^troupe_job_ends_total\{.*"failed"/;
  for (const one of [failing, failures]) assert.ok(series.some((line) => one.test(line)));
  const alertsAt = (minutes: number, jobs: Readonly<Record<number, number>>) => {
    const ends = { 0: 0, 10: 1 };
    return firingAlerts(t, series, {
      minutes,
      of: [
        [failing, jobs],
        [failures, ends],
      ],
    });
  };
  assert.deepEqual(alertsAt(20, { 0: 0, 10: 1 }), [], 'it may succeed at once');
  assert.deepEqual(alertsAt(90, { 0: 0, 10: 1 }), ['TroupeJobsFail']);
  assert.deepEqual(alertsAt(90, { 0: 0, 10: 1, 80: 0 }), [], 'it has succeeded');
  assert.deepEqual(alertsAt(360, { 0: 0, 10: 1 }), ['TroupeJobsFail']);
  assert.deepEqual(alertsAt(380, { 0: 0, 10: 1 }), [], 'its next instant is far away');
});

test('a delivery that dies fires an alert for an hour, also the first one of its reason', {
  skip,
}, async (t) => {
  const series = await seriesOf(await startChildServer(t));
  for (const reason of ['gone', 'outbox_full', 'timeout']) {
    const died = new RegExp(`^troupe_hook_deliveries_total\\{.*"dead",reason="${reason}"`);
    assert.ok(series.some((line) => died.test(line)));
    const alertsAt = (minutes: number) => firingAlerts(t, series, { minutes, of: [[died, { 0: 0, 30: 1 }]] });
    assert.deepEqual([alertsAt(80), alertsAt(95)], [['TroupeHookDeliveriesDie'], []]);
  }
});

test('a server that no scrape job covers fires an alert', { skip }, (t) => {
  assert.deepEqual(firingAlerts(t, ['unrelated 1']), ['TroupeNotScraped']);
});
