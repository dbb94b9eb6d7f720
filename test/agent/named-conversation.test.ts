import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { newConversationId } from '#src/agent/named-conversation.ts';
import { firstIdAt, type WorkspaceId } from '#src/base/ids.ts';
import { type ConversationRecord, conversationRecords } from '#storage/records/conversations.ts';
import { sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const HOUR_MS = 3_600_000;
const RECORD: ConversationRecord = {
  createdBy: 'ann',
  createdAt: '',
  updatedAt: '',
  notebookSessionId: null,
  model: null,
  instructions: null,
  datasourceSlugs: [],
};

async function shared(t: TestContext) {
  return sharedStore(t, (await temporaryStore(t)).path);
}

test('a new conversation has its home in the worker that opens it, and its id is greater than all committed ids', async (t) => {
  const store = await shared(t);
  const committed = `${firstIdAt('conversation', Date.now() + HOUR_MS)}${'0'.repeat(16)}`;
  store.write((tx) => tx.put(conversationRecords, RECORD, WORKSPACE, committed));
  await store.durable();
  const asked: string[] = [];
  const owns = (workspaceId: string, id: string) => {
    asked.push(`${workspaceId}/${id}`);
    return asked.length % 5 === 0;
  };
  const first = newConversationId(store, WORKSPACE, owns);
  const second = newConversationId(store, WORKSPACE, owns);
  assert.deepEqual([asked[4], asked[9]], [`ws_1/${first}`, `ws_1/${second}`]);
  assert.ok(first > committed && second > first, `${committed} ${first} ${second}`);
});

test('a worker that has no homes left creates no conversation', async (t) => {
  const store = await shared(t);
  assert.throws(() => newConversationId(store, WORKSPACE, () => false), { code: 'unavailable' });
});
