// tier: whole, because it kills, fills and restarts servers of several processes
/** Increments of backups: a chain of them restores to exactly the states that were backed up. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { backUp } from '#src/operate/maintenance/backup.ts';
import { INCREMENTS, readChain } from '#src/operate/maintenance/chain.ts';
import { compact } from '#src/operate/maintenance/compact.ts';
import { ChainWriter } from '#src/operate/maintenance/increment.ts';
import { markStore } from '#src/operate/maintenance/lineage.ts';
import { restore } from '#src/operate/maintenance/restore.ts';
import { verify } from '#src/operate/maintenance/verify.ts';
import { openSharedStore, openStore, openStoreReader } from '#storage/open-store.ts';
import { notebookRecords } from '#storage/records/notebooks.ts';
import type { Store } from '#storage/store.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { eventually } from '#test/support/processes.ts';
import { SeededRandom } from '#test/support/random.ts';
import { OWNER } from '#test/support/server-fixture.ts';
import { childScript } from '#test/support/store/child-script.ts';
import { damage } from '#test/support/store/damage.ts';
import { filledDirectory, things } from '#test/support/store/filled-directory.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

interface Fixture {
  readonly dataDir: string;
  readonly backup: string;
  readonly store: Store;
  readonly files: string;
  readonly writer: () => ChainWriter;
  /** Restores the backup and returns where. */
  readonly restored: (until?: number) => Promise<string>;
}

async function backedUp(t: TestContext): Promise<Fixture> {
  const dataDir = await filledDirectory(t);
  const store = await openStore(join(dataDir, 'store'), assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  const backup = join(dataDir, '..', 'backup');
  const copyStore = (to: string, isCompact: boolean) => store.copyTo(to, isCompact);
  await backUp({ dataDir, to: backup, copyStore, mark: await markStore(store) });
  let count = 0;
  return {
    dataDir,
    backup,
    store,
    files: join(dataDir, 'workspaces', 'ws_1', 'files'),
    writer: () => ChainWriter.open({ directory: backup, dataDir, store })!,
    async restored(until) {
      const to = join(dataDir, '..', `restored-${++count}`);
      await restore({ from: backup, dataDir: to, ...(until === undefined ? {} : { until }) });
      return to;
    },
  };
}

/** Returns all records of the test, by id. */
async function recordsOf(dataDir: string): Promise<Map<string, string>> {
  await using store = await openStoreReader(join(dataDir, 'store'));
  const page = { limit: Number.POSITIVE_INFINITY };
  return new Map([...store.list(things, 'ws_1', [], page)].map(({ id, value }) => [id, value]));
}

test('each increment restores exactly the records that were committed at its creation', async (t) => {
  const { store, writer, backup, restored, dataDir } = await backedUp(t);
  const seeded = new SeededRandom(7);
  const random = () => seeded.next();
  const expected = await recordsOf(dataDir);
  const states: { until: number; records: Map<string, string> }[] = [];
  let chain = writer();
  for (let round = 0; round < 12; round++) {
    for (let turn = 0; turn < 6; turn++) {
      store.write((tx) => {
        for (let n = 0; n < 30; n++) {
          const id = `t${Math.floor(random() * 2000)}`;
          if (random() < 0.3) {
            tx.remove(things, 'ws_1', id);
            expected.delete(id);
            continue;
          }
          // Some values have pages of their own, and some take many pages.
          const length = random() < 0.1 ? 3000 + Math.floor(random() * 600_000) : Math.floor(random() * 900);
          const value = `${round}.${turn} `.padEnd(length, id);
          tx.put(things, value, 'ws_1', id);
          expected.set(id, value);
        }
      });
      await store.durable();
    }
    if (round % 3 === 2) chain = writer(); // a new writer reads the files that a killed server has left
    const added = await chain.add();
    assert.equal(added?.number, round + 1);
    const { createdAt } = readChain(backup).increments.at(-1)!.manifest;
    states.push({ until: Date.parse(createdAt), records: new Map(expected) });
    await new Promise((resolve) => setTimeout(resolve, 2)); // two increments of the same millisecond have the same time
  }
  for (const { until, records } of states) {
    const to = await restored(until);
    assert.deepEqual(await recordsOf(to), records);
    assert.deepEqual((await verify(to)).damage, []);
    rmSync(to, { recursive: true });
  }
  const verified = await verify(backup);
  assert.deepEqual(verified.damage, []);
  assert.equal(verified.records, expected.size + 2); // the format of the store, and the mark
  assert.equal(verified.increments, 12);
  // The restored store can be written, with its list of free pages.
  const to = await restored();
  {
    await using again = await openStore(join(to, 'store'), assert.fail);
    for (let n = 0; n < 200; n++) {
      again.write((tx) => tx.put(things, 'x'.repeat(n * 50), 'ws_1', `after-${n}`));
      await again.durable();
    }
  }
  assert.deepEqual((await verify(to)).damage, []);
  assert.equal((await recordsOf(to)).size, expected.size + 200);
});

test('an increment made during commits contains exactly one committed state, without pages of later states', async (t) => {
  const { store, writer, restored, backup } = await backedUp(t);
  let [n, isOver] = [0, false];
  const writing = (async () => {
    while (!isOver) {
      n++;
      // Each commit writes two records far apart, which are equal in every state.
      store.write((tx) => {
        tx.put(things, `${n}`.padEnd((n % 40) * 300), 'ws_1', 'a-pair');
        tx.put(things, `${n}`.padEnd((n % 40) * 300), 'ws_1', 'z-pair');
        tx.remove(things, 'ws_1', `t${n % 500}`);
      });
      await store.durable();
    }
  })();
  const chain = writer();
  const acknowledged: { until: number; n: number }[] = [];
  for (let round = 0; round < 15; round++) {
    const before = n - 1;
    await chain.add();
    acknowledged.push({
      until: Date.parse(readChain(backup).increments.at(-1)!.manifest.createdAt),
      n: before,
    });
  }
  isOver = true;
  await writing;
  for (const { until, n: least } of acknowledged.filter((_, at) => at % 4 === 0)) {
    const to = await restored(until);
    const records = await recordsOf(to);
    assert.equal(records.get('a-pair'), records.get('z-pair'));
    assert.ok(Number(records.get('a-pair')) >= least, `${records.get('a-pair')} of ${least}`);
    assert.deepEqual((await verify(to)).damage, []);
  }
});

test('increments contain exactly the files that were written, moved and removed', async (t) => {
  const { files, writer, restored, backup } = await backedUp(t);
  await new Promise((resolve) => setTimeout(resolve, 2_100)); // a file's time counts as settled two seconds after its change
  const chain = writer();
  await chain.add();
  writeFileSync(join(files, 'new.txt'), 'new');
  mkdirSync(join(files, 'empty'));
  symlinkSync('new.txt', join(files, 'link'));
  const first = await chain.add();
  assert.deepEqual([first?.files, first?.removed], [1, 0]);
  // The next change keeps the size and the time of the file.
  utimesSync(join(files, 'run.sh'), 1, 1);
  await chain.add();
  writeFileSync(join(files, 'run.sh'), 'fals');
  utimesSync(join(files, 'run.sh'), 1, 1);
  renameSync(join(files, 'deep', 'table.csv'), join(files, 'table.csv'));
  rmSync(join(files, 'deep'), { recursive: true });
  rmSync(join(files, 'link'));
  writeFileSync(join(files, 'link'), 'no link');
  rmSync(join(files, 'new.txt'));
  mkdirSync(join(files, 'new.txt'));
  await chain.add();
  const to = join(await restored(), 'workspaces', 'ws_1', 'files');
  assert.deepEqual(readdirSync(to).sort(), ['empty', 'link', 'new.txt', 'run.sh', 'table.csv']);
  assert.deepEqual(readdirSync(join(to, 'new.txt')), []);
  const texts = ['link', 'run.sh', 'table.csv'].map((name) => readFileSync(join(to, name), 'utf8'));
  assert.deepEqual(texts, ['no link', 'fals', 'a,b\n1,2\n']);
  assert.deepEqual((await verify(backup)).damage, []);
});

test('a file with several hard links stays one file in a backup, in increments and after a restore', async (t) => {
  const { dataDir, files, writer, restored, backup, store } = await backedUp(t);
  const inodesIn = (folder: string) =>
    new Set(readdirSync(folder).map((name) => statSync(join(folder, name)).ino));
  const many = join(files, 'many');
  mkdirSync(many);
  writeFileSync(join(many, '0'), randomBytes(1024 * 1024));
  for (let n = 1; n < 100; n++) linkSync(join(many, '0'), join(many, String(n)));
  const added = await writer().add();
  assert.ok(
    added!.files >= 100 && added!.fileBytes < 2 * 1024 * 1024,
    `${added!.files} files, ${added!.fileBytes} bytes`,
  );
  assert.equal(inodesIn(join(backup, INCREMENTS, '000001', 'workspaces', 'ws_1', 'files', 'many')).size, 1);
  const whole = join(dataDir, '..', 'whole');
  await backUp({ dataDir, to: whole, copyStore: (to, isCompact) => store.copyTo(to, isCompact) });
  assert.equal(inodesIn(join(whole, 'workspaces', 'ws_1', 'files', 'many')).size, 1);
  rmSync(join(many, '7'));
  writeFileSync(join(many, '7'), 'its own');
  await writer().add();
  assert.deepEqual((await verify(backup)).damage, []);
  const to = join(await restored(), 'workspaces', 'ws_1', 'files', 'many');
  assert.equal(inodesIn(to).size, 2);
  for (const name of readdirSync(many))
    assert.deepEqual(readFileSync(join(to, name)), readFileSync(join(many, name)), name);
});

test('no increment is added if no data have changed', async (t) => {
  const { store, writer, backup } = await backedUp(t);
  // A file's time counts as settled two seconds after its change.
  await new Promise((resolve) => setTimeout(resolve, 2_100));
  await writer().add(); // the first files may have changed while they were copied
  assert.equal(await writer().add(), undefined);
  assert.equal(readdirSync(join(backup, INCREMENTS)).length, 1);
  store.write((tx) => tx.put(things, 'one', 'ws_1', 'one'));
  await store.durable();
  assert.equal((await writer().add())?.number, 2);
});

test('a store that was replaced or set back gets a new backup instead of an increment', async (t) => {
  const { dataDir, backup, store, writer } = await backedUp(t);
  await writer().add();
  assert.equal(writer().canGrow, true);
  const path = join(dataDir, 'store');
  await store[Symbol.asyncDispose]();
  const before = join(dataDir, '..', 'before.mdb');
  cpSync(join(path, 'data.mdb'), before);
  const opened = async <T>(use: (writer: ChainWriter, store: Store) => T | Promise<T>): Promise<T> => {
    await using again = await openStore(path, assert.fail);
    return await use(ChainWriter.open({ directory: backup, dataDir, store: again })!, again);
  };
  assert.equal(await opened(({ canGrow }) => canGrow), true, 'a restart changes nothing');
  await opened(async (chain, again) => {
    again.write((tx) => tx.put(things, 'later', 'ws_1', 'later'));
    await again.durable();
    await chain.add();
  });
  // The same file, with its earlier content.
  writeFileSync(join(path, 'data.mdb'), readFileSync(before));
  rmSync(join(path, 'lock.mdb'), { force: true });
  assert.equal(await opened(({ canGrow }) => canGrow), false, 'a store that was set back');
  await compact(dataDir);
  assert.equal(await opened(({ canGrow }) => canGrow), false, 'a store that was compacted');
});

test('the error for a damaged, missing or foreign increment names it, and earlier records can be restored', async (t) => {
  const { store, backup, writer, restored } = await backedUp(t);
  const chain = writer();
  for (const id of ['one', 'two', 'three']) {
    store.write((tx) => tx.put(things, id, 'ws_1', id));
    await store.durable();
    await chain.add();
    // Two increments of the same millisecond have the same time.
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  const [first] = readChain(backup).increments;
  const until = Date.parse(first!.manifest.createdAt);
  const second = join(backup, INCREMENTS, '000002');
  damage(join(second, 'pages'), 'backup-mark');
  assert.match(
    (await verify(backup)).damage.join(),
    /increments\/000002\/pages is missing or has other content/,
  );
  await assert.rejects(restored(), /000002\/pages is missing/);
  assert.equal((await recordsOf(await restored(until))).has('two'), false);
  rmSync(second, { recursive: true });
  await assert.rejects(restored(), /The increment .*000003 is damaged, or does not continue/);
  await assert.rejects(verify(backup), /The increment .*000003 is damaged/);
  renameSync(join(backup, INCREMENTS, '000003'), second);
  await assert.rejects(restored(), /The increment .*000002 is damaged, or does not continue/);
  assert.equal((await recordsOf(await restored(until))).get('one'), 'one');
  assert.equal(existsSync(join(backup, '..', 'restored-1')), false, 'nothing is written of a damaged backup');
});

test('after its server was killed at any moment, a backup with increments can be restored with all records that were added earlier', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  // A server that is killed during its look at the folder leaves the file of that look behind.
  const backups = () => readdirSync(directory).filter((name) => name.endsWith('Z'));
  const random = new SeededRandom(11);
  let acknowledged = 0;
  for (let round = 0; round < 8; round++) {
    const script = childScript(t, 'increment-writer', dataDir, directory);
    const lines = 1 + random.below(6);
    for (let n = 0; n < lines; n++) acknowledged = Number(await script.line());
    await new Promise((resolve) => setTimeout(resolve, random.below(40))); // the moment of the kill
    await script.kill();
    const newest = backups();
    assert.equal(newest.length, 1, 'a killed server goes on with the chain');
    const from = join(directory, newest[0]!);
    assert.deepEqual((await verify(from)).damage, []);
    const to = join(dataDir, '..', `restored-${round}`);
    await restore({ from, dataDir: to });
    const records = await recordsOf(to);
    assert.ok(Number(records.get('count')) >= acknowledged, `${records.get('count')} of ${acknowledged}`);
    const file = readFileSync(join(to, 'workspaces', 'ws_1', 'files', 'count'), 'utf8');
    assert.ok(Number(file) >= acknowledged, `${file} of ${acknowledged}`);
    assert.deepEqual((await verify(to)).damage, []);
  }
  const left = readdirSync(join(directory, backups()[0]!, INCREMENTS));
  assert.ok(left.filter((name) => name.includes('partial')).length <= 1, left.join());
});

for (const workers of ['1', '3']) {
  test(`an increment of a server with ${workers} workers under load has every earlier acknowledged write`, async (t) => {
    const server = await startChildServer(t, { TROUPE_WORKERS: workers });
    const [acknowledged, writing] = [[] as string[], new AbortController()];
    const writers = Array.from({ length: 4 }, async (_, n) => {
      while (!writing.signal.aborted)
        acknowledged.push((await server.client.notebooks.create({ title: `notebook ${n}` })).id);
    });
    await using store = await openSharedStore(
      join(server.dataDir, 'store'),
      assert.fail,
      async () => undefined,
    );
    const { dataDir } = server;
    const backups = temporaryDirectory(t);
    const backup = join(backups, 'backup');
    const copyStore = (to: string, isCompact: boolean) => store.copyTo(to, isCompact);
    await backUp({ dataDir, to: backup, copyStore, mark: await markStore(store) });
    const writer = ChainWriter.open({ directory: backup, dataDir, store })!;
    const before: { ids: string[]; until: number }[] = [];
    for (let round = 0; round < 6; round++) {
      const least = acknowledged.length + 20; // without a write in between, nothing would be added
      await eventually('more writes are acknowledged', () => acknowledged.length >= least);
      const ids = [...acknowledged];
      await writer.add();
      before.push({ ids, until: Date.parse(readChain(backup).increments.at(-1)!.manifest.createdAt) });
    }
    writing.abort();
    await Promise.all(writers);
    for (const [n, { ids, until }] of before.entries()) {
      const to = join(backups, `restored-${n}`);
      await restore({ from: backup, dataDir: to, until });
      assert.deepEqual((await verify(to)).damage, []);
      await using restored = await openStoreReader(join(to, 'store'));
      const kept = ids.filter((id) => restored.get(notebookRecords, OWNER.workspaceId, id) !== undefined);
      assert.equal(kept.length, ids.length);
    }
  });
}
