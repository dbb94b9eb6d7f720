/** Opens the store, and watches the free space for its growth. */

import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { Log } from '#src/base/log/log.ts';
import type { OperatorWarning } from '#src/base/log/operator-warning.ts';
import { notifyServiceManager } from '#src/base/os/service-notice.ts';
import { BackupSchedule } from '#src/operate/maintenance/backup-schedule.ts';
import { sealingOf } from '#src/operate/maintenance/nodes-sealing.ts';
import type { StorageCondition } from '#src/operate/operators/server-gauges.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';
import { freeBytesAt, freeInodesAt, type RoomState, StoreRoom } from '#storage/disk/store-room.ts';
import { SYSTEM } from '#storage/keys.ts';
import { describeProgress, type MigrationProgress, percentOf } from '#storage/migrations/conversion.ts';
import { openReadOnlyStore, openSharedStore, openStore } from '#storage/open-store.ts';
import { bootstrapRecord } from '#storage/records/identity.ts';
import type { Store } from '#storage/store.ts';
import type { ProcessContext } from './process-context.ts';

const MIB = 1024 * 1024;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** A commit takes milliseconds, or hundreds of them on a slow disk. */
const MAX_COMMIT_MS = 10_000;
/** The most damaged records that are logged and counted, each once. */
const MAX_DAMAGED = 1000;
/** LMDB's reader entries of dead workers are removed when slots change hands; this also removes those of workers without slots. */
const READERS_EVERY_MS = 60_000;

export interface StorageOptions extends ProcessContext {
  readonly cluster: Cluster;
  /** Called when a commit failed for good. */
  readonly onFatal: (error: Error) => void;
}

export interface Storage {
  readonly store: Store;
  /**
   * Returns warnings about the disk and backups for operators; empty while all is well. Another worker may have filled
   * the disk just now.
   */
  readonly warnings: () => readonly OperatorWarning[];
  readonly condition: () => StorageCondition;
}

/** Rejects when the store cannot be used. `stack` takes ownership. */
export async function openStorage(options: StorageOptions, stack: AsyncDisposableStack): Promise<Storage> {
  const { config, directory, log, cluster, onFatal } = options;
  const isShared = cluster.size > 1;
  let room: StoreRoom | undefined;
  const prepare = async (store: Store) => {
    room = await StoreRoom.open({
      store,
      path: directory.storePath,
      reserveBytes: config.diskReserveMb * MIB,
      warnBytes: config.diskWarnMb * MIB,
      workers: cluster.size,
      onChange: (state) => report(log, directory.root, state),
    });
  };
  const store = stack.use(
    config.readOnly
      ? await openReadOnlyStore(directory.storePath)
      : isShared
        ? await openSharedStore(directory.storePath, onFatal, prepare)
        : await openStore(directory.storePath, onFatal, undefined, prepare, conversionReporter(log)),
  );
  store.onFailedDecision((error) =>
    log.error({ err: error }, 'a decision that several workers may take has failed'),
  );
  if (isShared) {
    const timer = setInterval(() => store.dropDeadReaders(), READERS_EVERY_MS).unref();
    stack.defer(() => clearInterval(timer));
    cluster.onSlotsTaken(() => {
      store.refresh();
      store.dropDeadReaders();
    });
  }
  let lostCommits = 0;
  store.onLostCommit(() => {
    lostCommits++;
    log.error(
      { lostCommits },
      'a confirmed commit is missing from the store: changes that clients were told of are lost',
    );
  });
  const damaged = new Set<string>();
  store.onDamage((key, problem) => {
    const text = key.join('/');
    if (damaged.has(text) || damaged.size === MAX_DAMAGED) return;
    damaged.add(text);
    log.error(
      { key: text, problem },
      'a stored record is damaged: stop the server and run troupe verify --repair',
    );
  });
  stack.defer(() => room?.[Symbol.dispose]());
  let schedule: BackupSchedule | undefined;
  if (config.backupDir !== undefined) {
    schedule = new BackupSchedule({
      directory: config.backupDir,
      storeId: () => store.get(bootstrapRecord, SYSTEM)?.tokenId,
      everyMs: config.backupEveryH * HOUR_MS,
      keep: config.backupKeep,
      ...(config.backupIncrementMin === 0
        ? {}
        : { increments: { everyMs: config.backupIncrementMin * MINUTE_MS, store } }),
      isResponsible: () => cluster.owns(SYSTEM),
      dataDir: directory.root,
      copyStore: (to, compact) => store.copyTo(to, compact),
      sealing: sealingOf(config.keyringFile),
      log,
    });
    stack.use(schedule);
  }
  const roomState = () => (isShared ? room?.look() : room?.state);
  const freeBytes = () =>
    config.readOnly ? freeBytesAt(directory.storePath) : (roomState()?.freeBytes ?? 0);
  return {
    store,
    warnings() {
      const state = roomState();
      return [
        ...(config.readOnly ? [READ_ONLY] : []),
        ...slowCommitOf(store),
        ...(state === undefined ? [] : warningsOf(directory.root, state)),
        ...(schedule?.warnings ?? []),
        ...damagedWarning(damaged.size),
        ...lostCommitWarning(lostCommits),
      ];
    },
    condition: () => ({
      freeBytes: freeBytes(),
      freeInodes: freeInodesAt(directory.storePath),
      damagedRecords: damaged.size,
      backup: schedule?.status,
    }),
  };
}

const READ_ONLY: OperatorWarning = {
  kind: 'read_only',
  text: 'This server only reads (TROUPE_READ_ONLY): it refuses every change. To accept changes, start it without that setting.',
};

function damagedWarning(count: number): OperatorWarning[] {
  if (count === 0) return [];
  return [
    {
      kind: 'records_damaged',
      text: `${count} stored records are damaged: troupe verify names them, and troupe verify --repair takes them out.`,
    },
  ];
}

function lostCommitWarning(count: number): OperatorWarning[] {
  if (count === 0) return [];
  const text = `${count} confirmed commits are missing from the store: changes that clients were told of are lost. Keep a copy of the log, look at the disk, make sure that no other program opens the store, and restart the server.`;
  return [{ kind: 'commit_lost', text }];
}

function slowCommitOf({ commitMs }: Store): OperatorWarning[] {
  if (commitMs <= MAX_COMMIT_MS) return [];
  const s = Math.floor(commitMs / 1000);
  const text = `The store has not answered for ${s} s: changes wait. Look at the disk, or restart the server.`;
  return [{ kind: 'store_slow', text }];
}

function report(log: Log, root: string, state: RoomState): void {
  const { level, freeBytes, reservedBytes, fewInodes, stalled } = state;
  const fields = { level, freeBytes, reservedBytes, fewInodes, stalled };
  if (level === 'ample' && fewInodes === undefined) log.info(fields, 'the disk has enough space again');
  else
    log.warn(
      fields,
      warningsOf(root, state)
        .map(({ text }) => text)
        .join(' '),
    );
}

function warningsOf(root: string, state: RoomState): OperatorWarning[] {
  const { fewInodes } = state;
  if (fewInodes === undefined) return spaceWarningsOf(root, state);
  const left =
    fewInodes === 0 ? 'The disk takes no more files' : `The disk takes only ${fewInodes} more files`;
  const text = `${left}: it has no free inodes, whatever space is free at ${root}. Delete files there (df -i shows the count).`;
  return [
    ...spaceWarningsOf(root, state),
    {
      kind: 'inodes_low',
      text: fewInodes === 0 ? text : text.replace('it has no free inodes', 'its inodes are nearly used up'),
    },
  ];
}

function spaceWarningsOf(root: string, { level, freeBytes, stalled }: RoomState): OperatorWarning[] {
  const free = `${(freeBytes / MIB).toFixed(0)} MiB are free at ${root}`;
  if (level === 'low')
    return [{ kind: 'disk_low', text: `The disk is nearly full: ${free}. Free some disk space.` }];
  if (level === 'ample') return [];
  const waiting = stalled ? ' What was accepted before waits for space.' : '';
  const text = `The disk is full: ${free}. Nothing new is accepted until there is space; reads, cancellations and deletions go on.${waiting}`;
  return [{ kind: 'disk_full', text }];
}

/** Progress is reported every few seconds, after a commit; a slow disk may delay a commit. */
const MAX_SILENCE_US = 180_000_000;

/** Returns a function that logs the progress of a conversion. */
function conversionReporter(log: Log): (progress: MigrationProgress) => void {
  return (progress) => {
    log.info(
      { ...progress, percent: percentOf(progress) },
      'the store is being converted to the format of this release',
    );
    unawaited(
      notifyServiceManager({ STATUS: describeProgress(progress), EXTEND_TIMEOUT_USEC: MAX_SILENCE_US }),
      'open-storage: the notice to the service manager',
    );
  };
}
