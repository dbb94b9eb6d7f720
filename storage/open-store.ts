import { open } from 'lmdb';
import { defineRecord } from './codec.ts';
import { type Key, SYSTEM } from './keys.ts';
import { FORMAT_VERSION, MIGRATIONS } from './migrations.ts';
import { Store } from './store.ts';

interface Format {
  readonly version: number;
}
const formatRecord = defineRecord<Format>('format', 1);

const MAP_SIZE_BYTES = 64 * 1024 ** 3;

/**
 * Opens the LMDB environment at `path`, refuses one that a newer release has written, and brings an older one up to
 * date step by step; each step commits before the next begins, so an interrupted migration goes on where it stopped.
 */
export async function openStore(path: string, onFatal: (error: Error) => void): Promise<Store> {
  const database = open<Buffer, Key>({
    path,
    encoding: 'binary',
    keyEncoding: 'ordered-binary',
    mapSize: MAP_SIZE_BYTES,
    maxReaders: 64,
    // A commit resolves once it is flushed. With overlapping syncs there would be two moments, visible and durable,
    // and the tail of the second was measured to be longer.
    overlappingSync: false,
  });
  const store = new Store(database, onFatal);
  const found = store.get(formatRecord, SYSTEM)?.version;
  if (found !== undefined && found > FORMAT_VERSION) {
    await database.close();
    throw new Error(
      `The store at ${path} has format ${found}; this release reads up to ${FORMAT_VERSION}. Start a newer release.`,
    );
  }
  for (let version = found ?? FORMAT_VERSION; version < FORMAT_VERSION; version++) {
    const migrate = MIGRATIONS[version - 1];
    if (migrate === undefined) throw new Error(`There is no migration from store format ${version}.`);
    await migrate(store);
    store.write((tx) => tx.put(formatRecord, { version: version + 1 }, SYSTEM));
    await store.durable();
  }
  if (found === undefined) {
    store.write((tx) => tx.put(formatRecord, { version: FORMAT_VERSION }, SYSTEM));
    await store.durable();
  }
  return store;
}
