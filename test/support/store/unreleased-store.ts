/** A store of a build before 1.0.0. */
import { open } from 'lmdb';
import { defineRecord, encodeRecord } from '#storage/codec.ts';
import { type StoreKey, SYSTEM } from '#storage/keys.ts';

const formatRecord = defineRecord<{ readonly version: number }>('format', 1);

/** Makes a store at `path` as those builds did. Their formats had the numbers from 1 to 7. */
export async function writeUnreleased(path: string, version: number): Promise<void> {
  const database = open<Buffer, StoreKey>({ path, encoding: 'binary', keyEncoding: 'ordered-binary' });
  await database.put([SYSTEM, formatRecord.name], Buffer.from(encodeRecord(formatRecord, { version })));
  await database.close();
}
