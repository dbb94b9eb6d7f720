import assert from 'node:assert/strict';
import test from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { WorkspaceId } from '#src/base/ids.ts';
import { SavedNotebooks } from '#src/notebook/saved/saved-notebooks.ts';
import { notebookSummaries } from '#storage/records/notebooks.ts';
import { addWorkspaces, temporaryStore } from '#test/support/store/temporary-store.ts';

const HOME = 'ws_home' as WorkspaceId;
const LARGE = Array.from({ length: 2000 }, (_, n) => ({ cell_id: `c${n}`, code: 'x = 1\n'.repeat(500) }));

test('paging the notebooks misses no notebook whose creation takes long', async (t) => {
  const { store } = await temporaryStore(t);
  addWorkspaces(store, HOME);
  const notebooks = new SavedNotebooks(
    store,
    () => undefined,
    () => true,
  );
  let isOver = false;
  const large = notebooks.create(HOME, { serialization: { cells: LARGE } }).then(({ document }) => {
    isOver = true;
    return document.id;
  });
  const seen: string[] = [];
  for (let count = 0; !isOver; count++) {
    if (count < 5) await notebooks.create(HOME, {});
    await nextTurn();
    await store.durable();
    const page = { after: seen.at(-1), limit: 100 };
    seen.push(...[...store.list(notebookSummaries, HOME, [], page)].map(({ id }) => id));
  }
  await store.durable();
  const page = { after: seen.at(-1), limit: 100 };
  seen.push(...[...store.list(notebookSummaries, HOME, [], page)].map(({ id }) => id));
  assert.ok(seen.includes(await large));
  assert.equal(seen.length, [...store.listKeys(notebookSummaries, HOME, [], 100)].length);
  assert.ok(seen.length > 1);
});
