/** Changes that are no longer allowed when they are stored, because something has changed since their first check. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import { AppError } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { NotebookSecrets } from '#src/notebook/saved/notebook-secrets.ts';
import { SavedNotebooks } from '#src/notebook/saved/saved-notebooks.ts';
import { workspaceRecords } from '#storage/records/identity.ts';
import { addWorkspaces, temporaryStore } from '#test/support/store/temporary-store.ts';

const HOME = 'ws_home' as WorkspaceId;

test('no notebook is created or changed, and no secret set, once the workspace is deleted', async (t) => {
  const { store } = await temporaryStore(t);
  addWorkspaces(store, HOME);
  let parse: boolean | Promise<boolean> = true;
  const notebooks = new SavedNotebooks(
    store,
    () => undefined,
    () => parse,
  );
  const vault = { seal: assert.fail, remove: assert.fail, open: assert.fail };
  const secrets = new NotebookSecrets(store, vault, notebooks);
  const { document } = await notebooks.create(HOME, {});
  let parsed = (_: boolean) => {};
  parse = new Promise((resolve) => {
    parsed = resolve;
  });
  const change = { expectedUpdatedAt: document.updatedAt, by: 'ada' };
  const late = [notebooks.create(HOME, {}), notebooks.patch(HOME, document.id, { title: 'Late' }, change)];
  store.write((tx) => tx.remove(workspaceRecords, HOME));
  parsed(true);
  for (const change of late) await assert.rejects(change, { code: 'not_found' });
  const secret = { name: 'TOKEN', value: 'x', userId: 'ada' };
  assert.throws(() => secrets.set(HOME, document.id, secret), { code: 'not_found' });
});

test('a large change is refused without effect if a session was opened during the preparation of the change', async (t) => {
  const { store } = await temporaryStore(t);
  addWorkspaces(store, HOME);
  let checks = 0;
  const refuseWhileOpen = () => {
    if (++checks > 1) throw new AppError('session_open', 'A session is open.');
  };
  const notebooks = new SavedNotebooks(store, refuseWhileOpen, () => true);
  const { document } = await notebooks.create(HOME, {});
  const fields = { serialization: { cells: [{ cell_id: 'a', code: '#'.repeat(MAX_SIZE_AT_ONCE) }] } };
  const change = { expectedUpdatedAt: document.updatedAt, by: 'ada' };
  await assert.rejects(notebooks.patch(HOME, document.id, fields, change), { code: 'session_open' });
  assert.equal(checks, 2);
  assert.equal(notebooks.read(HOME, document.id).updatedAt, document.updatedAt);
});
