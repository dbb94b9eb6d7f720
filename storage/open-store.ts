import { open } from 'lmdb';
import { loadCloseOnExec } from '#src/core/descriptors.ts';
import { defineRecord } from './codec.ts';
import { type Key, SYSTEM } from './keys.ts';
import { CURRENT_FORMAT, type StoreFormat } from './migrations.ts';
import { Store } from './store.ts';

const formatRecord = defineRecord<{ readonly version: number }>('format', 1);

const MAP_SIZE_BYTES = 64 * 1024 ** 3;

/**
 * Opens the LMDB environment at `path`. Rejects when a newer release has written it. An older format is migrated step by
 * step; each step commits before the next begins, so an interrupted migration continues where it stopped.
 */
export async function openStore(
  path: string,
  onFatal: (error: Error) => void,
  format: StoreFormat = CURRENT_FORMAT,
): Promise<Store> {
  const closeOnExec = await loadCloseOnExec();
  const database = open<Buffer, Key>({
    path,
    encoding: 'binary',
    keyEncoding: 'ordered-binary',
    mapSize: MAP_SIZE_BYTES,
    maxReaders: 64,
    // A commit resolves once it is flushed. With overlapping syncs, commits would become visible before they are durable,
    // and the slowest flushes were measured to take longer.
    overlappingSync: false,
  });
  // LMDB leaves its data file open to programs that this process starts.
  closeOnExec();
  const store = new Store(database, onFatal);
  try {
    await bringUpToDate(store, path, format);
    return store;
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function bringUpToDate(
  store: Store,
  path: string,
  { version, migrations }: StoreFormat,
): Promise<void> {
  const found = store.get(formatRecord, SYSTEM)?.version;
  const note = async (reached: number) => {
    store.write((tx) => tx.put(formatRecord, { version: reached }, SYSTEM));
    await store.durable();
  };
  if (found === undefined) return note(version);
  if (found > version) {
    throw new Error(
      `The store at ${path} has format ${found}; this release reads up to ${version}. Start a newer release.`,
    );
  }
  for (let from = found; from < version; from++) {
    const migrate = migrations[from - 1];
    if (migrate === undefined) throw new Error(`There is no migration from store format ${from}.`);
    await migrate(store);
    await note(from + 1);
  }
}
