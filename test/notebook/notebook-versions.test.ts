// own process: it sets the clock back, and ours never goes back
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { newId, timeOfId, type WorkspaceId } from '#src/base/ids.ts';
import { MAX_VERSIONS, MAX_VERSIONS_BYTES, VERSION_MS } from '#src/base/version-limits.ts';
import type { NotebookDocument } from '#src/notebook/saved/document.ts';
import { SavedNotebooks } from '#src/notebook/saved/saved-notebooks.ts';
import { notebookVersionContents, notebookVersions } from '#storage/records/notebooks.ts';
import { addWorkspaces, temporaryStore } from '#test/support/store/temporary-store.ts';

const HOME = 'ws_home' as WorkspaceId;

/** A notebook whose changes are made one after the other. */
async function open(t: TestContext) {
  // The age of a version is in its id, and the time in the ids of a process never goes back.
  t.mock.timers.enable({ apis: ['Date'], now: timeOfId(newId('notebook')) + 1 });
  const { store } = await temporaryStore(t);
  addWorkspaces(store, HOME);
  const notebooks = new SavedNotebooks(
    store,
    () => undefined,
    () => true,
  );
  const { document } = await notebooks.create(HOME, {}, 'ada');
  const { id } = document;
  let expectedUpdatedAt = document.updatedAt;
  const set = async (code: string, by: string, isReplacement = false) => {
    const fields = { serialization: { cells: [{ cell_id: 'a', code }] } };
    const change = { expectedUpdatedAt, by, isReplacement };
    expectedUpdatedAt = (await notebooks.patch(HOME, id, fields, change)).updatedAt;
    await store.durable();
  };
  const codeOf = (updatedAt: string) => {
    const { serialization } = JSON.parse(Buffer.from(notebooks.version(HOME, id, updatedAt)).toString());
    return (serialization as NotebookDocument['serialization']).cells[0]?.code;
  };
  const shown = () =>
    notebooks.versions(HOME, id).map(({ updatedAt, updatedBy }) => [codeOf(updatedAt), updatedBy]);
  const kept = () => [...store.listKeys(notebookVersionContents, HOME, [id], 1000)].length;
  return { store, notebooks, id, set, shown, kept };
}

test('a change by another author keeps the previous state as a version, with the author of that state', async (t) => {
  const { set, shown } = await open(t);
  await set('1', 'ada');
  await set('2', 'bob');
  await set('3', 'ada');
  assert.deepEqual(shown(), [
    ['3', 'ada'],
    ['2', 'bob'],
    ['1', 'ada'],
  ]);
});

test('changes of one author within five minutes are one version and need no further write', async (t) => {
  const { store, id, set, shown, kept } = await open(t);
  await set('1', 'ada');
  t.mock.timers.tick(VERSION_MS - 1000);
  await set('2', 'ada');
  assert.equal(kept(), 0);
  assert.equal(store.has(notebookVersions, HOME, id), false);
  t.mock.timers.tick(1000);
  await set('3', 'ada');
  await set('4', 'ada');
  assert.deepEqual(shown(), [
    ['4', 'ada'],
    ['2', 'ada'],
  ]);
});

test('a file that replaces a notebook keeps the previous state as a version, even for the same author', async (t) => {
  const { set, shown } = await open(t);
  await set('1', 'ada');
  await set('2', 'ada', true);
  assert.deepEqual(shown(), [
    ['2', 'ada'],
    ['1', 'ada'],
  ]);
});

test('a change without an effect creates no version and no author', async (t) => {
  const { set, shown } = await open(t);
  await set('1', 'ada');
  await set('1', 'bob', true);
  assert.deepEqual(shown(), [['1', 'ada']]);
  await set('2', 'bob');
  assert.deepEqual(shown(), [
    ['2', 'bob'],
    ['1', 'ada'],
  ]);
});

test('an edit in a live session keeps the state of the previous author', async (t) => {
  const { notebooks, id, set, shown } = await open(t);
  await set('1', 'ada');
  const before = notebooks.read(HOME, id);
  const edited = (code: string) => ({
    ...before,
    serialization: { ...before.serialization, cells: [{ cell_id: 'a', code, options: {} }] },
  });
  const change = { before, versionSince: undefined, after: edited('2'), by: 'bob' };
  const { document, versionSince } = notebooks.save(HOME, change);
  notebooks.save(HOME, { before: document, versionSince, after: edited('3'), by: 'bob' });
  assert.deepEqual(shown(), [
    ['3', 'bob'],
    ['1', 'ada'],
  ]);
});

test(`a notebook keeps its last ${MAX_VERSIONS} earlier versions`, async (t) => {
  const { set, shown, kept } = await open(t);
  for (let i = 0; i <= MAX_VERSIONS; i++) await set(String(i), `user-${i}`);
  assert.equal(kept(), MAX_VERSIONS);
  assert.equal(shown().at(-1)?.[0], '0');
  await set('last', 'ada');
  assert.equal(kept(), MAX_VERSIONS);
  assert.equal(shown().at(-1)?.[0], '1');
  assert.equal(shown().length, MAX_VERSIONS + 1);
});

test('the earlier versions of a notebook take at most 32 MiB, but the newest is always kept', async (t) => {
  const { notebooks, set, shown, kept, store, id } = await open(t);
  const large = 'x'.repeat(MAX_VERSIONS_BYTES / 4 - 1024);
  for (const name of ['a', 'b', 'c', 'd', 'e']) await set(name + large, name);
  assert.equal(kept(), 5);
  assert.deepEqual(
    shown().map(([, by]) => by),
    ['e', 'd', 'c', 'b', 'a', 'ada'],
  );
  await set('small', 'f');
  assert.deepEqual(
    shown().map(([, by]) => by),
    ['f', 'e', 'd', 'c', 'b'],
  );
  const bytes = store.get(notebookVersions, HOME, id)?.reduce((sum, entry) => sum + entry.bytes, 0) ?? 0;
  assert.ok(bytes <= MAX_VERSIONS_BYTES);
  await set('x'.repeat(MAX_VERSIONS_BYTES + 1), 'g');
  await set('after', 'h');
  assert.deepEqual(
    shown().map(([, by]) => by),
    ['h', 'g'],
  );
  assert.equal(notebooks.versions(HOME, id)[1]?.isCurrent, false);
});
