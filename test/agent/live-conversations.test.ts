import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { encodeEntry } from '#src/agent/entry.ts';
import { LiveConversations } from '#src/agent/live-conversations.ts';
import { type EntryId, firstIdAt, newId, type RunId, type WorkspaceId } from '#src/base/ids.ts';
import { SessionStream } from '#src/runtime/events/session-stream.ts';
import { conversationRecords, entryRecords } from '#storage/records/conversations.ts';
import type { Store } from '#storage/store.ts';
import { RecordingSink, snapshot } from '#test/runtime/events/recording-sink.ts';
import { afterTurns } from '#test/support/after-turns.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_one' as WorkspaceId;
const SESSION = { workspaceId: WORKSPACE, id: 'conv_one' };
const RUN = 'run_one' as RunId;
const LONG = 'x'.repeat(100_000);
const ENTRIES = 12;

function conversationsOf(store: Store): LiveConversations {
  return new LiveConversations({
    store,
    makeStream: (sessionId) => new SessionStream({ sessionId }),
    isBusy: () => false,
    outcomeOf: () => undefined,
  });
}

async function saved(t: TestContext) {
  const { store } = await temporaryStore(t);
  const fresh = () => conversationsOf(store);
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

test('a conversation that is deleted during its reading does not stay in memory', async (t) => {
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
  await assert.rejects(async () => conversations.prepare(SESSION), /only in the worker that is its home/);
  assert.deepEqual(conversations.of({ workspaceId: WORKSPACE, id: 'conv_two' }).entries, []);
});

/** Follows a conversation and returns the story of what it gets: missed events have a `?`. */
function follow(conversations: LiveConversations, lastEventId = '') {
  const sink = new RecordingSink();
  const { stream } = conversations.of(SESSION);
  const replay = () => [snapshot, ...conversations.of(SESSION).replay()];
  const subscription = stream.subscribe(sink, { lastEventId, replay });
  const missed = () => sink.frames.filter(({ event }) => 'missed' in event && event.missed === true);
  return { sink, subscription, missed };
}

/** A conversation whose follower was cut off before the last words of its answer. Returns the id of its last event. */
async function cutOffBeforeTheEnd(store: Store, conversations: LiveConversations) {
  const conversation = conversations.of(SESSION);
  const { sink, subscription } = follow(conversations);
  const id = conversation.beginDraft(RUN);
  conversation.addDelta('text-delta', 'Almost ');
  await afterTurns('the text has begun', () => sink.story.at(-1) === 'text-delta');
  const lastEventId = sink.frames.at(-1)!.id;
  subscription.close();
  conversation.addDelta('text-delta', 'all.');
  conversation.append({
    id,
    role: 'assistant',
    runId: RUN,
    content: [{ type: 'text', text: 'Almost all.' }],
  });
  await store.durable();
  conversations.release(SESSION);
  await afterTurns('the conversation is out of memory', () => conversations.peek(SESSION) === undefined);
  return lastEventId;
}

test('a client that was cut off just before the end of an answer gets the last words when it reconnects', async (t) => {
  const { store } = await temporaryStore(t);
  const conversations = conversationsOf(store);
  const { missed } = follow(conversations, await cutOffBeforeTheEnd(store, conversations));
  assert.deepEqual(
    missed().map(({ event }) => event.type),
    ['text-delta', 'agent-entry'],
  );
});

test('the events of a conversation that nobody uses are dropped after five minutes', async (t) => {
  const { store } = await temporaryStore(t);
  const conversations = conversationsOf(store);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const lastEventId = await cutOffBeforeTheEnd(store, conversations);
  t.mock.timers.tick(5 * 60_000 - 1);
  const earlier = follow(conversations, lastEventId);
  assert.equal(earlier.missed().length, 2);
  earlier.subscription.close();
  await afterTurns('the conversation is out of memory', () => conversations.peek(SESSION) === undefined);
  assert.ok(conversations.streamOf(SESSION) !== undefined);
  t.mock.timers.tick(5 * 60_000);
  assert.equal(conversations.streamOf(SESSION), undefined);
});

test('the events of a conversation whose home moves to another worker are dropped', async (t) => {
  const { store } = await temporaryStore(t);
  const conversations = conversationsOf(store);
  const lastEventId = await cutOffBeforeTheEnd(store, conversations);
  conversations.leaveTo(() => true);
  assert.equal(conversations.streamOf(SESSION), undefined);
  assert.deepEqual(follow(conversations, lastEventId).missed(), []);
});

test('entries and runs come after the entries of a process whose clock was ahead', async (t) => {
  const { store, fresh, say } = await saved(t);
  const aheadId = `${firstIdAt('entry', Date.now() + 3_600_000)}${'z'.repeat(16)}`;
  const early = say('early');
  store.write((tx) => {
    tx.remove(entryRecords, WORKSPACE, SESSION.id, early.id);
    const entry = { entry: { ...early, id: aheadId as EntryId }, model: null, provider: [] };
    tx.putEncoded(encodeEntry(entry), WORKSPACE, SESSION.id, aheadId);
  });
  await store.durable();
  assert.ok(newId('run') < aheadId.replace('ent_', 'run_'), 'the clock is behind');
  const conversation = fresh().of(SESSION);
  assert.ok(newId('run') > aheadId.replace('ent_', 'run_'));
  const late = conversation.append({ role: 'user', runId: RUN, content: [{ type: 'text', text: 'late' }] });
  await store.durable();
  const ids = fresh()
    .of(SESSION)
    .entries.map(({ entry }) => entry.id);
  assert.deepEqual(ids.slice(-2), [aheadId, late.id]);
});
