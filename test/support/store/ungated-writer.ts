/** A program that opens the store of its first argument without its gate, commits one record, and prints `committed`. */
import { open } from 'lmdb';
import { encodeRecord } from '#storage/codec.ts';
import type { StoreKey } from '#storage/keys.ts';
import { sharedThings } from './shared-store-process.ts';

const [, , path = ''] = process.argv;
const database = open<Buffer, StoreKey>({
  path,
  encoding: 'binary',
  keyEncoding: 'ordered-binary',
  overlappingSync: false,
});
await database.put(
  ['ws_1', sharedThings.name, 'past the gate'],
  encodeRecord(sharedThings, Buffer.alloc(1)) as Buffer,
);
process.stdout.write('committed\n');
await database.close();
