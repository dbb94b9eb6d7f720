// tier: whole, because it kills processes that write
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { KeyringStore } from '#src/datasource/keys/keyring-store.ts';
import { readSealed } from '#src/datasource/keys/sealed-connections.ts';
import { openStore } from '#storage/open-store.ts';
import { childScript } from '#test/support/store/child-script.ts';
import { SEALED, sealedPlace, sealedText } from '#test/support/store/sealed.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

/** How many processes are killed: `TROUPE_TEST_SEEDS`, else 8, or 50 with `CI=true`. */
const SEEDS = Number(process.env.TROUPE_TEST_SEEDS ?? (process.env.CI === 'true' ? 50 : 8));

test('after a rotation is killed at any moment, every datasource opens, and the next rotation completes', async (t) => {
  for (let seed = 0; seed < SEEDS; seed++) {
    const directory = temporaryDirectory(t);
    const child = childScript(t, 'key-rotator', directory);
    for (let i = 0; i <= seed % 3; i++) await child.line();
    // The wait spins instead of sleeping, so that the kill hits a different point of the rotation
    // each time.
    const blowAt = performance.now() + ((seed * 7) % 23);
    while (performance.now() < blowAt);
    await child.kill();
    const store = await openStore(join(directory, 'store'), assert.fail);
    const keys = await KeyringStore.open(store, join(directory, 'keyring.json'));
    for (let n = 0; n < SEALED; n++) {
      assert.deepEqual(readSealed(store, keys, sealedPlace(n)), sealedText(n), `seed ${seed}`);
    }
    const active = await keys.add();
    await keys.rotate();
    const states = keys.states().filter(({ sealed }) => sealed > 0);
    assert.deepEqual(states, [{ id: active, active: true, sealed: SEALED }], `seed ${seed}`);
    await store[Symbol.asyncDispose]();
  }
});
