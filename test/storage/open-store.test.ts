import assert from 'node:assert/strict';
import { readdirSync, readlinkSync } from 'node:fs';
import test, { type TestContext } from 'node:test';
import { inheritable } from '#src/base/os/descriptors.ts';
import { defineRecord } from '#storage/codec.ts';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import { SYSTEM } from '#storage/keys.ts';
import {
  convert,
  type MigrationProgress,
  migrationCursor,
  type Pass,
  passOver,
} from '#storage/migrations/conversion.ts';
import { CURRENT_FORMAT, type StoreFormat } from '#storage/migrations.ts';
import { openReadOnlyStore, openSharedStore, openStore, openStoreReader } from '#storage/open-store.ts';
import type { Store } from '#storage/store.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';
import { writeUnreleased } from '#test/support/store/unreleased-store.ts';

const pets = defineRecord<string>('pet', 1);

test('a store of a newer format is refused with one clear message, and the newer release still opens it', async (t) => {
  const { path, as } = stores(t);
  await as({ version: 3, migrations: [] }, (store) => store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1')));
  await assert.rejects(openStore(path, assert.fail, { version: 2, migrations: [] }), {
    message: `The store at ${path} has format 3; this release reads up to 2. Start the newer release again, or restore the backup that was made before it was started (troupe restore).`,
  });
  await as({ version: 3, migrations: [] }, (store) => assert.equal(store.get(pets, 'ws_1', 'p1'), 'cat'));
});

test('a store of a server that only reads takes no write, and an older one is not converted', async (t) => {
  const { path, as } = stores(t);
  await as(CURRENT_FORMAT, (store) => store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1')));
  const store = await openReadOnlyStore(path);
  assert.equal(store.get(pets, 'ws_1', 'p1'), 'cat');
  assert.throws(() => store.write((tx) => tx.put(pets, 'dog', 'ws_1', 'p1')), { code: 'read_only' });
  assert.equal(store.get(pets, 'ws_1', 'p1'), 'cat');
  await store[Symbol.asyncDispose]();

  process.env.NEXT_FORMAT = '1';
  t.after(() => delete process.env.NEXT_FORMAT);
  await assert.rejects(
    openReadOnlyStore(path),
    /A server that only reads does not convert the store\. Convert it with troupe migrate/,
  );
});

test('an older store is migrated step by step, in order, once', async (t) => {
  const { as } = stores(t);
  await as({ version: 1, migrations: [] }, (store) => store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1')));
  const { format, ran } = recordingFormat(4);
  await as(format, (store) => assert.equal(store.get(pets, 'ws_1', 'p1'), 'cat 1 2 3'));
  await as(format, (store) => assert.equal(store.get(pets, 'ws_1', 'p1'), 'cat 1 2 3'));
  assert.deepEqual(ran, [1, 2, 3]);
});

test('an interrupted migration continues where it stopped', async (t) => {
  const { path, as } = stores(t);
  await as({ version: 1, migrations: [] }, (store) => store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1')));
  const interrupted = recordingFormat(4, 2);
  await assert.rejects(openStore(path, assert.fail, interrupted.format), /the power went/);
  const { format, ran } = recordingFormat(4);
  await as(format, (store) => assert.equal(store.get(pets, 'ws_1', 'p1'), 'cat 1 2 3'));
  assert.deepEqual(
    [interrupted.ran, ran],
    [
      [1, 2],
      [2, 3],
    ],
  );
});

test('a step that was interrupted between two commits continues after the last one and converts no record twice', async (t) => {
  const PETS = 10_000;
  const { path, as } = stores(t);
  await as({ version: 1, migrations: [] }, (store) =>
    store.write((tx) => {
      for (let i = 0; i < PETS; i++) tx.put(pets, 'cat', 'ws_1', `p${i}`);
    }),
  );
  let left = PETS - 1000;
  const cutShort = () => [
    passOver(pets, 'ws_1', [], (tx, value, ids) => {
      if (left-- === 0) throw new Error('the power went');
      tx.put(pets, `${value} 1`, 'ws_1', ...ids);
    }),
  ];
  await assert.rejects(
    openStore(path, assert.fail, { version: 2, migrations: [cutShort] }),
    /the power went/,
  );
  const { format, ran } = recordingFormat(2);
  const told: MigrationProgress[] = [];
  const store = await openStore(path, assert.fail, format, undefined, (progress) => told.push(progress));
  t.after(() => store[Symbol.asyncDispose]());
  const values = [...store.list(pets, 'ws_1', [], { limit: PETS })].map(({ value }) => value);
  assert.deepEqual([values.length, ...new Set(values)], [PETS, 'cat 1']);
  assert.ok(ran.length < PETS, `${ran.length} converted by the second`);
  assert.deepEqual([told[0]?.done, told[0]?.total], [PETS - ran.length, PETS]);
  assert.deepEqual([told.at(-1)?.done, told.at(-1)?.total, told.at(-1)?.leftS], [PETS, PETS, 0]);
  assert.equal(store.get(migrationCursor, SYSTEM), undefined);
});

test('a release with other passes begins an interrupted conversion again, from the first of its passes', async (t) => {
  const { path, as } = stores(t);
  await as({ version: 1, migrations: [] }, (store) =>
    store.write((tx) => {
      for (const id of ['p1', 'p2']) tx.put(pets, 'cat', 'ws_1', id);
    }),
  );
  const isEnding: Pass<unknown> = {
    ...passOver(pets, 'ws_1', [], () => {}),
    end() {
      throw new Error('the power went');
    },
  };
  const cutShort = () => [
    passOver(pets, 'ws_1', ['p1'], () => {}),
    passOver(pets, 'ws_1', [], () => {}),
    isEnding,
  ];
  await assert.rejects(
    openStore(path, assert.fail, { version: 2, migrations: [cutShort] }),
    /the power went/,
  );
  const { format, ran } = recordingFormat(2);
  await as(format, () => undefined);
  assert.deepEqual(ran, [1, 1]);
});

test('large records are converted in commits of a bounded size', async (t) => {
  const commitsFor = async (bytes: number) => {
    const { path, as } = stores(t);
    await as({ version: 1, migrations: [] }, (store) =>
      store.write((tx) => {
        for (const id of ['p1', 'p2', 'p3', 'p4']) tx.put(pets, 'x'.repeat(bytes), 'ws_1', id);
      }),
    );
    const store = await openStore(path, assert.fail, { version: 1, migrations: [] });
    t.after(() => store[Symbol.asyncDispose]());
    let commits = 0;
    store.onFlushed(() => commits++);
    const migration = () => [
      passOver(pets, 'ws_1', [], (tx, value, ids) => tx.put(pets, `${value}!`, 'ws_1', ...ids)),
    ];
    await convert({ store, from: 1, migration, onProgress() {} });
    return commits;
  };
  assert.deepEqual([await commitsFor(1), await commitsFor(5 * 1024 * 1024)], [1, 4]);
});

test('a store of a build before 1.0.0 is refused with one line by every opening, whatever the number of its format', async (t) => {
  for (let version = 0; version <= 8; version++) {
    const path = temporaryDirectory(t);
    await writeUnreleased(path, version);
    const refusal = {
      name: 'OperatorError',
      message: `The store at ${path} was written by a build before 1.0.0 (format ${version} of those builds), which this release does not read. Export the notebooks with the build that wrote it (troupe notebooks export), and import them into a new data directory (troupe notebooks import).`,
    };
    await assert.rejects(openStore(path, assert.fail), refusal);
    await assert.rejects(openStore(path, assert.fail, { version: 8, migrations: [] }), refusal);
    await assert.rejects(openReadOnlyStore(path), refusal);
    await assert.rejects(openStoreReader(path), refusal);
    await assert.rejects(
      openSharedStore(path, assert.fail, async () => undefined),
      refusal,
    );
  }
});

test('a store that a newer release has partly converted is refused', async (t) => {
  const { path, as } = stores(t);
  await as({ version: 2, migrations: [] }, async (store) => {
    store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
    await store.durable();
    await convert({
      store,
      from: 2,
      migration: () => [passOver(pets, 'ws_1', [], () => {})],
      onProgress() {},
    });
  });
  await assert.rejects(openStore(path, assert.fail, { version: 2, migrations: [] }), {
    message: `A newer release has begun to convert the store at ${path} from format 2, which is the newest that this release reads. Start the newer release again, or restore the backup that was made before it was started (troupe restore).`,
  });
});

test('a new store has the present format and needs no migration', async (t) => {
  const { as } = stores(t);
  const { format, ran } = recordingFormat(3);
  await as(format, () => undefined);
  await as(format, () => undefined);
  assert.deepEqual(ran, []);
});

test('a format without a migration is refused', async (t) => {
  const { path, as } = stores(t);
  await as({ version: 1, migrations: [] }, () => undefined);
  await assert.rejects(
    openStore(path, assert.fail, { version: 2, migrations: [] }),
    /no migration from store format 1/,
  );
});

test('there is a migration for every step to the present format', () => {
  assert.equal(CURRENT_FORMAT.migrations.length, CURRENT_FORMAT.version - 1);
});

/** Steps that note that they ran and append their number; the step `failsAt` fails. */
function recordingFormat(version: number, failsAt?: number): { format: StoreFormat; ran: number[] } {
  const ran: number[] = [];
  const step = (from: number) => () => [
    passOver(pets, 'ws_1', [], (tx, value, ids) => {
      ran.push(from);
      if (from === failsAt) throw new Error('the power went');
      tx.put(pets, `${value} ${from}`, 'ws_1', ...ids);
    }),
  ];
  return { format: { version, migrations: Array.from({ length: version - 1 }, (_, i) => step(i + 1)) }, ran };
}

function stores(t: TestContext) {
  const path = temporaryDirectory(t);
  const as = async (format: StoreFormat, use: (store: Store) => unknown): Promise<void> => {
    const store = await openStore(path, assert.fail, format);
    await use(store);
    await store[Symbol.asyncDispose]();
  };
  return { path, as };
}

test('no program that the server starts inherits the store, its lock or the claim on the directory', async (t) => {
  const before = new Set(inheritable());
  const directory = await DataDirectory.claim(temporaryDirectory(t));
  t.after(() => directory[Symbol.dispose]());
  const store = await openStore(directory.storePath, assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
  await store.durable();
  const open = readdirSync('/proc/self/fd').flatMap((name) => {
    try {
      return [readlinkSync(`/proc/self/fd/${name}`)];
    } catch {
      return []; // the descriptor that has read the list
    }
  });
  for (const file of ['data.mdb', 'lock.mdb', 'claim'])
    assert.ok(
      open.some((path) => path.startsWith(directory.root) && path.endsWith(`/${file}`)),
      file,
    );
  assert.deepEqual(
    inheritable().filter((descriptor) => !before.has(descriptor)),
    [],
  );
});
