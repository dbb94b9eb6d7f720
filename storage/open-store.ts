import { chownSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { invariant } from '#src/base/errors/invariant.ts';
import { OperatorError, systemFailure } from '#src/base/errors/operator-error.ts';
import { loadCloseOnExec } from '#src/base/os/descriptors.ts';
import { CURRENT_FORMAT, type StoreFormat } from '#storage/migrations.ts';
import { defineRecord } from './codec.ts';
import { OpeningGate } from './disk/opening-gate.ts';
import {
  DATA_FILE,
  LOCK_FILE,
  requireRoomForFiles,
  requireSoundFile,
  requireStoreFile,
  settleDataFile,
} from './disk/store-folder.ts';
import { type StoreKey, SYSTEM } from './keys.ts';
import { convert, type MigrationProgress, migrationCursor } from './migrations/conversion.ts';
import { Store } from './store.ts';

interface FormatRecord {
  readonly version: number;
  readonly isUnreleased?: true;
}

/**
 * Builds before 1.0.0 had formats of their own, from 1 to 7, and wrote version 1 of this record. So none of these formats is
 * taken for the format of a release.
 */
const formatRecord = defineRecord<FormatRecord>('format', 2, (value) => ({
  version: Number(Object(value).version),
  isUnreleased: true,
}));

/** Address space for the file. No memory or disk space is taken before it is used. */
const MAP_SIZE_BYTES = 256 * 1024 ** 3;

const NEWER_RELEASE =
  'Start the newer release again, or restore the backup that was made before it was started (troupe restore).';

/** The advice for stores and backups of builds before 1.0.0. */
export const EXPORT_NOTEBOOKS =
  'Export the notebooks with the build that wrote it (troupe notebooks export), and import them into a new data directory (troupe notebooks import).';

/** Enough for tools and 64 workers, each of which may read a range or make a backup while it also reads other records. */
const MAX_READERS = 256;

/**
 * Opens the LMDB environment at `path`. Rejects with `OperatorError` when it cannot be used: it is damaged, a newer
 * release or a build before 1.0.0 has written it, or the system refuses. An older format is converted, with a call of `onProgress` every few
 * seconds; an interrupted conversion resumes after its last commit. `prepare` runs before anything is written.
 */
export async function openStore(
  path: string,
  onFatal: (error: Error) => void,
  format: StoreFormat = CURRENT_FORMAT,
  prepare: (store: Store) => Promise<unknown> = async () => undefined,
  onProgress: (progress: MigrationProgress) => void = () => {},
): Promise<Store> {
  const closeOnExec = await loadCloseOnExec();
  requireSoundFile(path);
  const { opened, gate } = await openGated(path, () => openDatabase(path, false));
  // LMDB would leave its data file open in programs that this process starts.
  closeOnExec();
  const store = new Store(opened, onFatal, { gate });
  try {
    await prepare(store);
    await bringUpToDate(store, path, format, onProgress);
    settleDataFile(path);
    return store;
  } catch (error) {
    await opened.close();
    gate[Symbol.dispose]();
    throw error;
  }
}

/**
 * Opens the store at `path` as one of several processes that write it. Another process has opened
 * it with `openStore` before. A file that others write cannot be examined, and there is nothing to
 * migrate. `prepare` runs before anything is written.
 */
export async function openSharedStore(
  path: string,
  onFatal: (error: Error) => void,
  prepare: (store: Store) => Promise<unknown>,
): Promise<Store> {
  const closeOnExec = await loadCloseOnExec();
  const { opened, gate } = await openGated(path, () => openDatabase(path, false));
  closeOnExec();
  const store = new Store(opened, onFatal, { gate, isShared: true });
  try {
    const version = requireKnownFormat(store, path, CURRENT_FORMAT);
    invariant(version === CURRENT_FORMAT.version, 'The store is migrated before a worker opens it.', path);
    await prepare(store);
    return store;
  } catch (error) {
    await opened.close();
    gate[Symbol.dispose]();
    throw error;
  }
}

/**
 * Opens the store at `path` for a server that only reads. Nothing is written, except for LMDB's table of readers where that file
 * can be written. Rejects with `OperatorError` as `openStore` does, and when the store is missing, empty, or has an older format.
 */
export async function openReadOnlyStore(path: string): Promise<Store> {
  const closeOnExec = await loadCloseOnExec();
  const store = await openForReader(path, true);
  closeOnExec();
  try {
    const { version } = CURRENT_FORMAT;
    const found = formatOf(store, path);
    if (found === version) return store;
    throw found === undefined
      ? new OperatorError(
          `The store at ${path} is empty.`,
          'Start the server without TROUPE_READ_ONLY first.',
        )
      : new OperatorError(
          `The store at ${path} has format ${found}, and this release needs format ${version}. A server that only reads does not convert the store.`,
          'Convert it with troupe migrate, or start the release that wrote it.',
        );
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

/** The reading part of a store. */
export type StoreReader = Pick<
  Store,
  'get' | 'list' | 'listKeys' | 'listSizes' | 'copyTo' | 'checkAll' | 'bytesOf' | 'soundBytesOf'
> &
  AsyncDisposable;

/**
 * Opens the store at `path`, which must exist, for reading; a server may be writing it. Rejects with `OperatorError` as
 * `openStore` does, also when this release would have to migrate it first.
 */
export async function openStoreReader(path: string): Promise<StoreReader> {
  return openForReader(path, false);
}

async function openForReader(path: string, isReadOnly: boolean): Promise<Store> {
  requireStoreFile(path);
  requireSoundFile(path);
  const { opened, gate } = await openGated(path, () => openForReading(path));
  const store = new Store(opened, () => undefined, { gate, isReadOnly });
  try {
    requireKnownFormat(store, path, CURRENT_FORMAT);
    return store;
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * LMDB keeps a list of readers in a file next to the store. When root has made that file, the
 * server's user must still be able to use it.
 */
function openForReading(path: string): RootDatabase<Buffer, StoreKey> {
  const umask = process.umask(0o077);
  try {
    const database = openDatabase(path, true);
    const { uid, gid } = statSync(join(path, DATA_FILE));
    const lockFile = join(path, LOCK_FILE);
    if (existsSync(lockFile) && statSync(lockFile).uid !== uid) chownSync(lockFile, uid, gid);
    return database;
  } finally {
    process.umask(umask);
  }
}

/** Opens the store within `openNow` while nobody commits to it. */
async function openGated(path: string, openNow: () => RootDatabase<Buffer, StoreKey>) {
  requireRoomForFiles(path);
  try {
    mkdirSync(path, { recursive: true });
    return await OpeningGate.open(path, openNow);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw systemFailure(`The store at ${path} cannot be opened`, error);
  }
}

function openDatabase(path: string, readOnly: boolean): RootDatabase<Buffer, StoreKey> {
  return open<Buffer, StoreKey>({
    path,
    readOnly,
    encoding: 'binary',
    keyEncoding: 'ordered-binary',
    mapSize: MAP_SIZE_BYTES,
    maxReaders: MAX_READERS,
    // A commit resolves once it is flushed. With overlapping syncs, commits would become visible before they are durable,
    // and the slowest flushes were measured to take longer.
    overlappingSync: false,
    // The store itself collects the writes of a turn in one batch. lmdb-js would make promises of its own, whose
    // rejections no caller could catch.
    eventTurnBatching: false,
  });
}

async function bringUpToDate(
  store: Store,
  path: string,
  { version, migrations }: StoreFormat,
  onProgress: (progress: MigrationProgress) => void,
): Promise<void> {
  const found = requireKnownFormat(store, path, { version, migrations });
  const note = async (reached: number) => {
    store.write((tx) => {
      tx.put(formatRecord, { version: reached }, SYSTEM);
      tx.remove(migrationCursor, SYSTEM);
    });
    await store.durable();
  };
  if (found === undefined) return note(version);
  for (let from = found; from < version; from++) {
    await convert({ store, from, migration: migrations[from - 1]!, onProgress });
    await note(from + 1);
  }
}

/** Returns the format of the store, or undefined when it is empty. Throws when this release cannot use that format. */
function requireKnownFormat(
  store: Pick<Store, 'get'>,
  path: string,
  { version, migrations }: StoreFormat,
): number | undefined {
  const found = formatOf(store, path);
  if (found === undefined) return undefined;
  if (found > version) {
    throw new OperatorError(
      `The store at ${path} has format ${found}; this release reads up to ${version}.`,
      NEWER_RELEASE,
    );
  }
  if (found === version && store.get(migrationCursor, SYSTEM)?.from === version)
    throw new OperatorError(
      `A newer release has begun to convert the store at ${path} from format ${version}, which is the newest that this release reads.`,
      NEWER_RELEASE,
    );
  for (let from = found; from < version; from++) {
    if (migrations[from - 1] !== undefined) continue;
    throw new OperatorError(
      `The store at ${path} has format ${found}, and there is no migration from store format ${from}.`,
      'Start the release that wrote it, then the ones after it.',
    );
  }
  return found;
}

/**
 * Returns the format of a store; undefined when it is empty. Throws `OperatorError` when it cannot be read, or when a build
 * before 1.0.0 has written the store.
 */
export function formatOf(store: Pick<Store, 'get'>, path: string): number | undefined {
  const found = readFormat(store, path);
  if (found?.isUnreleased === true)
    throw new OperatorError(
      `The store at ${path} was written by a build before 1.0.0 (format ${found.version} of those builds), which this release does not read.`,
      EXPORT_NOTEBOOKS,
    );
  return found?.version;
}

function readFormat(store: Pick<Store, 'get'>, path: string): FormatRecord | undefined {
  try {
    return store.get(formatRecord, SYSTEM);
  } catch (error) {
    throw new OperatorError(
      `The store at ${path} is damaged: its format cannot be read.`,
      'Restore it from a backup (troupe restore).',
      error,
    );
  }
}
