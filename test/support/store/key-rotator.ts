/**
 * Rotates a keyring while its store holds sealed connections, and prints a line for each completed rotation, until it is
 * killed. Its argument is the directory of both.
 */
import { join } from 'node:path';
import { KeyringStore } from '#src/datasource/keys/keyring-store.ts';
import { putSealed } from '#src/datasource/keys/sealed-connections.ts';
import { openStore } from '#storage/open-store.ts';
import { SEALED, sealedPlace, sealedText } from './sealed.ts';

const directory = process.argv[2]!;
const store = await openStore(join(directory, 'store'), (error) => {
  throw error;
});
const keys = await KeyringStore.open(store, join(directory, 'keyring.json'));
store.write((tx) => {
  for (let n = 0; n < SEALED; n++) putSealed(tx, keys.ring, sealedPlace(n), sealedText(n));
});
await store.durable();
for (let n = 0; ; n++) {
  process.stdout.write(`${n}\n`);
  await keys.add();
  await keys.rotate();
}
