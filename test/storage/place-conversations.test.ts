import assert from 'node:assert/strict';
import test from 'node:test';
import { SYSTEM } from '#storage/keys.ts';
import { idAt } from '#storage/lists/places.ts';
import { CURRENT_FORMAT } from '#storage/migrations.ts';
import { openStore } from '#storage/open-store.ts';
import {
  type ConversationRecord,
  conversationPlaces,
  conversationRecords,
} from '#storage/records/conversations.ts';
import { userWorkspaces } from '#storage/records/identity.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const FORMAT_5 = { version: 5, migrations: CURRENT_FORMAT.migrations.slice(0, 4) };
/** More conversations than one commit converts. */
const COUNT = 700;

const record = (createdAt: string): ConversationRecord => ({
  ...{ createdBy: 'ada', createdAt, updatedAt: createdAt, notebookSessionId: null },
  ...{ model: null, instructions: null, datasourceSlugs: [] },
});

test('conversations of a store of format 5 are listed in the order of creation', async (t) => {
  const path = temporaryDirectory(t);
  const old = await openStore(path, assert.fail, FORMAT_5);
  old.write((tx) => {
    for (const workspaceId of ['ws_1', 'ws_2']) {
      tx.put(userWorkspaces, null, SYSTEM, 'ada', workspaceId);
      for (let i = 0; i < COUNT; i++) {
        const createdAt = new Date(Date.UTC(2030, 0, 1) - i * 1000).toISOString();
        tx.put(conversationRecords, record(createdAt), workspaceId, `conv_${String(i).padStart(4, '0')}`);
      }
      tx.put(conversationRecords, record('2031-01-01T00:00:00.000Z'), workspaceId, 'nb_1');
    }
  });
  await old[Symbol.asyncDispose]();
  await using store = await openStore(path, assert.fail);
  for (const workspaceId of ['ws_1', 'ws_2']) {
    const all = [...store.list(conversationPlaces, workspaceId, [], { limit: Number.POSITIVE_INFINITY })];
    const ids = all.map(({ id }) => idAt(id));
    assert.equal(ids.length, COUNT + 1);
    assert.deepEqual([ids[0], ids[COUNT - 1], ids[COUNT]], ['conv_0699', 'conv_0000', 'nb_1']);
  }
});
