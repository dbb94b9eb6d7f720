import assert from 'node:assert/strict';
import test from 'node:test';
import type { WorkspaceId } from '#src/base/ids.ts';
import { SavedNotebooks } from '#src/notebook/saved/saved-notebooks.ts';
import { addWorkspaces, temporaryStore } from '#test/support/store/temporary-store.ts';

const HOME = 'ws_home' as WorkspaceId;
/** A notebook that takes several slices. */
const LARGE = { serialization: { cells: [{ cell_id: 'a', code: '#'.repeat(1024 * 1024) }] } };
const AT_ONCE = 2;
const WAITING = 64;

test('few changes of large notebooks of a workspace are made at once, a limited number waits, and one more is refused', async (t) => {
  const { store } = await temporaryStore(t);
  addWorkspaces(store, HOME);
  const notebooks = new SavedNotebooks(
    store,
    () => undefined,
    () => true,
  );
  const { document } = await notebooks.create(HOME, LARGE, 'ada');
  await store.durable();
  const change = { expectedUpdatedAt: document.updatedAt, by: 'ada', isReplacement: false };
  const rename = () => notebooks.patch(HOME, document.id, { title: 'new' }, change);
  const counts: Record<string, number> = {};
  for (const end of await Promise.allSettled(Array.from({ length: AT_ONCE + WAITING + 1 }, rename))) {
    const name = end.status === 'fulfilled' ? 'done' : String(end.reason.code);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  assert.deepEqual(counts, { done: 1, stale_update: AT_ONCE + WAITING - 1, unavailable: 1 });
});
