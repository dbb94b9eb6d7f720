/**
 * The metrics that are read from the parts of the server only on request, and cost nothing
 * otherwise.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type OperatorWarning, WARNING_KINDS } from '#src/base/log/operator-warning.ts';
import { addProcessGauges } from '#src/base/metrics/process-gauges.ts';
import type { Sample } from '#src/base/metrics/registry.ts';
import type { KernelHost } from '#src/confined/processes/host/kernel-host.ts';
import type { NodeList } from '#src/contract/wire/nodes.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { BackupStatus } from '../maintenance/backup-schedule.ts';
import type { KernelSampler } from './kernel-usage.ts';

/** The figures of the disk, the records and the backups, for metrics. */
export interface StorageCondition {
  /** Free bytes on the disk of the data directory, for the server's user. */
  readonly freeBytes: number;
  /** How many more files that disk takes; undefined when it has no such limit. */
  readonly freeInodes: number | undefined;
  /** Damaged records that this process has read. */
  readonly damagedRecords: number;
  /** The schedule of backups; undefined when this process makes none. */
  readonly backup: BackupStatus | undefined;
}

/** The figures of the jobs or the hooks whose home is this process, for metrics. */
export interface TimedWork {
  /** How long the earliest overdue one has waited, in seconds; 0 when none is overdue. */
  readonly overdueS: number;
  /** How many have each condition. */
  readonly counts: ReadonlyMap<string, number>;
}

export interface ObservedServer {
  readonly host: KernelHost;
  /** The folder of the store. */
  readonly storePath: string;
  readonly load: () => { readonly streams: number; readonly requests: number };
  readonly warnings: () => readonly OperatorWarning[];
  readonly condition: () => StorageCondition;
  readonly jobs: () => TimedWork;
  readonly hooks: () => TimedWork;
  readonly isReady: () => boolean;
  /** The kernel nodes, in the one process that reports them; with `enabled` false in all others. */
  readonly nodes: () => NodeList;
}

/** Adds the gauges, and begins to time commits. The kernels are sampled before the metrics are read. Disposing of the result stops the sampling. */
export function observeServer(
  { metrics, runtime, store }: PlaneContext,
  { host, storePath, load, warnings, condition, jobs, hooks, isReady, nodes }: ObservedServer,
  kernels: KernelSampler,
): Disposable {
  const { registry } = metrics;
  const one = (value: number): Sample[] => [[[], value]];
  const commits = metrics.commits.of();
  store.onFlushed((ms) => commits.observe(ms / 1000));
  registry.observedGauge(
    { name: 'http_server_active_requests', help: 'Requests that have no answer yet, without event streams.' },
    [],
    () => one(load().requests),
  );
  registry.observedGauge({ name: 'troupe_streams', help: 'Open event streams.' }, [], () =>
    one(load().streams),
  );
  registry.observedGauge(
    { name: 'troupe_actors', help: 'Actors in memory, by kind and state.' },
    ['kind', 'state'],
    () => runtime.counts().map(({ kind, state, count }) => [[kind, state], count]),
  );
  registry.observedGauge(
    {
      name: 'troupe_kernels_memory_bytes',
      help: 'Resident memory of all kernels and the processes they started; a shared page counts in each process.',
    },
    [],
    () => one(kernels.latest.kernels.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0)),
  );
  registry.observedGauge({ name: 'troupe_kernels', help: 'Kernels that run.' }, [], () =>
    one(host.kernelCount),
  );
  registry.observedGauge(
    { name: 'troupe_nodes', help: 'Kernel nodes, by state; absent without nodes.' },
    ['state'],
    () => {
      const { enabled, items } = nodes();
      if (!enabled) return [];
      const states = ['joined', 'draining', 'away'] as const;
      return states.map((state) => [[state], items.filter((node) => node.state === state).length]);
    },
  );
  registry.observedGauge(
    { name: 'troupe_kernels_waiting', help: 'Kernels that wait for a node with room; absent without nodes.' },
    [],
    () => (nodes().enabled ? one(nodes().waiting) : []),
  );
  registry.observedGauge(
    {
      name: 'troupe_kernel_host_up',
      help: '1 when kernels can be started: the host is up, and one has started.',
    },
    [],
    () => one(host.state === 'up' && host.problem === null ? 1 : 0),
  );
  registry.observedGauge({ name: 'troupe_store_size_bytes', help: 'Size of the store on disk.' }, [], () =>
    one(statSync(join(storePath, 'data.mdb'), { throwIfNoEntry: false })?.size ?? 0),
  );
  registry.observedGauge(
    { name: 'troupe_ready', help: '1 when the server is ready for requests, as GET /readyz says.' },
    [],
    () => one(isReady() ? 1 : 0),
  );
  registry.observedGauge(
    {
      name: 'troupe_warnings',
      help: '1 for each kind of warning that GET /readyz has now, 0 for the others.',
    },
    ['kind'],
    () => {
      const present = new Set(warnings().map(({ kind }) => kind));
      return WARNING_KINDS.map((kind) => [[kind], present.has(kind) ? 1 : 0]);
    },
  );
  registry.observedGauge(
    {
      name: 'troupe_jobs_overdue_seconds',
      help: 'How long the earliest instant of a job has waited that should have fired; 0 when none waits.',
    },
    [],
    () => one(jobs().overdueS),
  );
  registry.observedGauge(
    {
      name: 'troupe_jobs',
      help: 'Jobs that failed last time, that a person has paused, and that have paused themselves.',
    },
    ['condition'],
    () => [...jobs().counts].map(([name, count]) => [[name], count]),
  );
  registry.observedGauge(
    {
      name: 'troupe_hooks_overdue_seconds',
      help: 'How long the earliest event or delivery of a hook has waited after it was due; 0 when none waits.',
    },
    [],
    () => one(hooks().overdueS),
  );
  registry.observedGauge(
    { name: 'troupe_hooks', help: 'Hooks that a person has paused, and that have paused themselves.' },
    ['condition'],
    () => [...hooks().counts].map(([name, count]) => [[name], count]),
  );
  registry.observedGauge(
    { name: 'troupe_damaged_records', help: 'Damaged records that were read since the start, 1000 at most.' },
    [],
    () => one(condition().damagedRecords),
  );
  registry.observedGauge(
    { name: 'troupe_disk_free_bytes', help: 'Free space on the disk of the data directory, for the server.' },
    [],
    () => one(condition().freeBytes),
  );
  registry.observedGauge(
    {
      name: 'troupe_disk_free_inodes',
      help: 'How many more files fit on the disk of the data directory; absent where the disk has no such limit.',
    },
    [],
    () => {
      const { freeInodes } = condition();
      return freeInodes === undefined ? [] : one(freeInodes);
    },
  );
  const backup = (read: (status: BackupStatus) => number | undefined) => (): Sample[] => {
    const status = condition().backup;
    const value = status && read(status);
    return value === undefined ? [] : one(value);
  };
  registry.observedGauge(
    {
      name: 'troupe_backup_last_success_timestamp_seconds',
      help: 'When the newest backup was begun, in seconds since 1970; 0 when there is none. Absent where the server makes no backups.',
    },
    [],
    backup(({ newestAtMs }) => (newestAtMs ?? 0) / 1000),
  );
  registry.observedGauge(
    { name: 'troupe_backup_failed', help: '1 when the latest attempt at a backup failed.' },
    [],
    backup(({ hasFailed }) => (hasFailed ? 1 : 0)),
  );
  registry.observedGauge(
    { name: 'troupe_backup_interval_seconds', help: 'How often a backup is made.' },
    [],
    backup(({ everyMs }) => everyMs / 1000),
  );
  registry.observedGauge(
    {
      name: 'troupe_backup_last_increment_timestamp_seconds',
      help: 'Time of the last increment, or of the last check that found no changes, in seconds since 1970. Absent where the server makes no increments, and before the first one since its start.',
    },
    [],
    backup(({ incrementAtMs }) => incrementAtMs && incrementAtMs / 1000),
  );
  registry.observedGauge(
    {
      name: 'troupe_backup_increment_interval_seconds',
      help: 'How often changes are added to the newest backup. Absent where the server adds none.',
    },
    [],
    backup(({ incrementEveryMs }) => incrementEveryMs && incrementEveryMs / 1000),
  );
  registry.observedGauge(
    {
      name: 'troupe_backup_duration_seconds',
      help: 'Duration of the last backup that was made since the start of the server.',
    },
    [],
    backup(({ durationMs }) => durationMs && durationMs / 1000),
  );
  return addProcessGauges(registry);
}
