import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { LiveConversations } from '#src/agent/live-conversations.ts';
import type { RunId, WorkspaceId } from '#src/core/ids.ts';
import { SessionStream } from '#src/events/session-stream.ts';
import { conversationRecords, entryRecords } from '#storage/records/conversations.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_one' as WorkspaceId;
const SESSION = { workspaceId: WORKSPACE, id: 'conv_one' };
const RUN = 'run_one' as RunId;
const LONG = 'x'.repeat(100_000);
const ENTRIES = 12;

async function saved(t: TestContext) {
  const { store } = await temporaryStore(t);
  const fresh = () =>
    new LiveConversations({
      store,
      makeStream: (sessionId) => new SessionStream({ sessionId }),
      isBusy: () => false,
      outcomeOf: () => undefined,
    });
  const record = {
    createdBy: 'user_one',
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-01T00:00:00.000Z',
    notebookSessionId: null,
    model: null,
    instructions: null,
    datasourceSlugs: [],
  };
  store.write((tx) => tx.put(conversationRecords, record, WORKSPACE, SESSION.id));
  const say = (text: string, conversations = fresh()) =>
    conversations.of(SESSION).append({ role: 'user', runId: RUN, content: [{ type: 'text', text }] });
  const first = fresh();
  for (let i = 0; i < ENTRIES; i++) say(`${i} ${LONG}`, first);
  await store.durable();
  return { store, fresh, say };
}

test('a long conversation is read in slices and then kept in memory', async (t) => {
  const { fresh } = await saved(t);
  const conversations = fresh();
  const reading = conversations.prepare(SESSION);
  assert.ok(reading !== undefined && conversations.peek(SESSION) === undefined);
  await reading;
  const texts = conversations.peek(SESSION)?.entries.map(({ entry }) => JSON.stringify(entry.content));
  assert.deepEqual(
    texts?.map((text) => Number(/(\d+) x/.exec(text)?.[1])),
    [...Array(ENTRIES).keys()],
  );
  assert.equal(conversations.prepare(SESSION), undefined);
});

test('entries added while a conversation is being read are not lost', async (t) => {
  const { store, fresh, say } = await saved(t);
  const conversations = fresh();
  const reading = conversations.prepare(SESSION);
  say('last', conversations);
  await store.durable();
  await reading;
  assert.equal(conversations.of(SESSION).entries.length, ENTRIES + 1);
});

test('a conversation that was deleted while it was read is not in memory', async (t) => {
  const { store, fresh, say } = await saved(t);
  const { id } = say('last');
  await store.durable();
  const conversations = fresh();
  const reading = conversations.prepare(SESSION);
  store.write((tx) => {
    tx.remove(conversationRecords, WORKSPACE, SESSION.id);
    tx.remove(entryRecords, WORKSPACE, SESSION.id, id);
  });
  await reading;
  assert.equal(conversations.peek(SESSION), undefined);
});

test('a conversation without entries needs no reading', async (t) => {
  const { store } = await temporaryStore(t);
  const conversations = new LiveConversations({
    store,
    makeStream: (sessionId) => new SessionStream({ sessionId }),
    isBusy: () => false,
    outcomeOf: () => undefined,
  });
  assert.equal(conversations.prepare(SESSION), undefined);
  assert.equal(conversations.peek(SESSION), undefined);
});

test('entries of a conversation that cannot be loaded appear in no other conversation', async (t) => {
  const { store } = await saved(t);
  const conversations = new LiveConversations({
    store,
    makeStream: (sessionId) => new SessionStream({ sessionId }),
    owns: (_, id) => id !== SESSION.id,
    isBusy: () => false,
    outcomeOf: () => undefined,
  });
  await assert.rejects(async () => conversations.prepare(SESSION), /at home in another worker/);
  assert.deepEqual(conversations.of({ workspaceId: WORKSPACE, id: 'conv_two' }).entries, []);
});
