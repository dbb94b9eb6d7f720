import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { setImmediate as turnOver } from 'node:timers/promises';
import { AppError } from '#src/base/errors/errors.ts';
import {
  type AssetId,
  newId,
  type RunId,
  type SessionId,
  timeOfId,
  type WorkspaceId,
} from '#src/base/ids.ts';
import type { RunKind } from '#src/contract/wire/run.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { RunDeletion } from '#src/runtime/runs/run-deletion.ts';
import type { RunDocument } from '#src/runtime/runs/run-document.ts';
import type { RunQuery } from '#src/runtime/runs/run-lists.ts';
import { type NewRun, type RunEnd, RunRepository } from '#src/runtime/runs/run-repository.ts';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import { endPlaces, runIndex, userRuns } from '#storage/records/runs.ts';
import { Removals } from '#storage/removals.ts';
import type { Store } from '#storage/store.ts';
import { addWorkspaces, rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const SESSION = 'nb_1' as SessionId;
const COMPLETED: RunEnd = {
  status: 'completed',
  error: null,
  output: { stored: true, parts: [] },
  assets: new Map(),
};
const RUN: NewRun = { workspaceId: WORKSPACE, sessionId: SESSION, kind: 'notebook', input: {} };
const FAILED: RunEnd = {
  ...COMPLETED,
  status: 'failed',
  error: { code: 'cell_failed', message: 'no' },
  output: null,
};

test('a run has a running record at once, and its output when it has finished', async (t) => {
  const { store } = await temporaryStore(t);
  const { book } = openBook(t, store);
  const { runId } = book.begin({ ...RUN, input: { type: 'all' } });
  const { createdAt, ...begun } = shown(book, runId);
  assert.deepEqual(begun, {
    id: runId,
    kind: 'notebook',
    sessionId: SESSION,
    status: 'running',
    input: { type: 'all' },
    output: null,
    error: null,
    startedAt: createdAt,
    finishedAt: null,
  });
  book.finish(WORKSPACE, runId, FAILED);
  const { finishedAt, ...ended } = shown(book, runId);
  assert.deepEqual(ended, {
    ...withoutEnd(begun),
    createdAt,
    status: 'failed',
    error: FAILED.error,
    output: null,
  });
  assert.ok(finishedAt !== null && finishedAt >= createdAt);
});

test('a run never ends before it began, even if its id is ahead of the clock', async (t) => {
  const { store } = await temporaryStore(t);
  const { book } = openBook(t, store);
  newId<RunId>('run', Date.now() + 1000); // like a worker that waits until its ids may follow another worker's newest id
  const [finished, cancelled] = [1, 2].map(() => book.begin({ ...RUN, input: null }).runId);
  book.finish(WORKSPACE, finished!, COMPLETED);
  assert.equal(shown(book, finished!).finishedAt, shown(book, finished!).createdAt);
  book.cancel(WORKSPACE, cancelled!, () =>
    book.finish(WORKSPACE, cancelled!, { ...COMPLETED, status: 'cancelled' }),
  );
  assert.equal(shown(book, cancelled!).finishedAt, shown(book, cancelled!).createdAt);
});

test('a run ends once, and a second end does not change its record', async (t) => {
  const { store } = await temporaryStore(t);
  const { book, notices } = openBook(t, store);
  const { runId } = book.begin(RUN);
  book.finish(WORKSPACE, runId, COMPLETED);
  const first = shown(book, runId);
  const assets = new Map([
    ['asset_1' as AssetId, { mimetype: 'text/plain', sha256: '', bytes: new Uint8Array() }],
  ]);
  book.finish(WORKSPACE, runId, { ...FAILED, assets });
  await store.durable();
  book.finish(WORKSPACE, runId, FAILED);
  assert.deepEqual(shown(book, runId), first);
  assert.throws(() => book.reader.asset(WORKSPACE, runId, 'asset_1'), refusedWith('not_found'));
  assert.deepEqual(notices, ['running', 'completed']);
});

test('cancelling an active run stops its work, and can be repeated until the run has ended', async (t) => {
  const { store } = await temporaryStore(t);
  const { book } = openBook(t, store);
  const { runId } = book.begin(RUN);
  const stopped: [RunKind, SessionId][] = [];
  const cancel = () => book.cancel(WORKSPACE, runId, (...whom) => stopped.push(whom));
  cancel();
  cancel();
  assert.deepEqual(stopped, [
    ['notebook', SESSION],
    ['notebook', SESSION],
  ]);
  assert.equal(shown(book, runId).status, 'running');
  book.finish(WORKSPACE, runId, COMPLETED);
  assert.throws(cancel, refusedWith('run_finished'));
  await store.durable();
  assert.throws(cancel, refusedWith('run_finished'));
  assert.throws(() => book.cancel(WORKSPACE, 'run_0' as RunId, assert.fail), refusedWith('not_found'));
});

test('the writes of a request that cancels a run are one transaction with the end of the run', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { store } = await temporaryStore(t);
  const { book } = openBook(t, store);
  const { runId } = book.begin(RUN);
  await store.durable();
  let flushes = 0;
  store.onFlushed(() => flushes++);
  book.cancel(WORKSPACE, runId, () => {});
  addWorkspaces(store, 'ws_2');
  const answered = store.durable();
  await turnOver();
  book.finish(WORKSPACE, runId, { ...COMPLETED, status: 'cancelled' });
  await answered;
  assert.deepEqual([flushes, shown(book, runId).status], [1, 'cancelled']);
});

test('a cancel that ends its run at once is committed without a wait', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { store } = await temporaryStore(t);
  const { book } = openBook(t, store);
  const { runId } = book.begin(RUN);
  await store.durable();
  book.cancel(WORKSPACE, runId, () => book.finish(WORKSPACE, runId, { ...COMPLETED, status: 'cancelled' }));
  await store.durable();
  assert.equal(store.durable(), undefined);
});

test('the end of a run does not read the record or the index entry of the run', async (t) => {
  const { store } = await temporaryStore(t);
  const { book } = openBook(t, store);
  const { runId } = book.begin(RUN);
  await store.durable();
  const reads = t.mock.method(store, 'get');
  book.finish(WORKSPACE, runId, COMPLETED);
  assert.deepEqual(
    reads.mock.calls.map(({ arguments: [kind] }) => kind.name),
    [],
  );
});

test("the operators' view of a run after a restart comes from its record, because a run has no snapshot", async (t) => {
  const { store } = await temporaryStore(t);
  const { book } = openBook(t, store);
  const { runId } = book.begin({ ...RUN, kind: 'agent' });
  const id = { workspaceId: WORKSPACE, id: runId };
  assert.deepEqual(openBook(t, store).book.actors.inspector.detail(id)?.state, { running: 'active' });
  book.finish(WORKSPACE, runId, FAILED);
  const { finishedAt } = shown(book, runId);
  const { book: later } = openBook(t, store);
  const { state, presence, since, links } = later.actors.inspector.detail(id)!;
  assert.deepEqual([state, presence, since], ['failed', 'ended', finishedAt]);
  assert.deepEqual(links, [{ kind: 'agent-session', id: SESSION }]);
  await store.durable();
  assert.deepEqual([...store.listKeys(actorSnapshots, WORKSPACE, [], 10)], []);
});

test('a run of an earlier server process is stale, even after it was read, and only a cancel ends it', async (t) => {
  const stores = await temporaryStore(t);
  const before = openBook(t, stores.store);
  const { runId } = before.book.begin(RUN);
  const begun = shown(before.book, runId);
  await stores.store.durable();
  before.actors.stopAll();

  const { book, notices } = openBook(t, await stores.reopen());
  assert.deepEqual(shown(book, runId), { ...begun, stale: true });
  book.actors.restore({ workspaceId: WORKSPACE, id: runId });
  assert.deepEqual(shown(book, runId), { ...begun, stale: true });
  book.finish(WORKSPACE, runId, COMPLETED);
  assert.deepEqual(shown(book, runId), { ...begun, stale: true });
  book.cancel(WORKSPACE, runId, assert.fail);
  const { finishedAt, ...ended } = shown(book, runId);
  assert.deepEqual(ended, { ...withoutEnd(begun), status: 'cancelled' });
  assert.notEqual(finishedAt, null);
  assert.deepEqual(notices, ['cancelled']);
});

test('a wait for a run ends once its end is on disk, when the time has passed, or when the client leaves', async (t) => {
  const { store } = await temporaryStore(t);
  const { book } = openBook(t, store);
  const { runId } = book.begin(RUN);
  const { signal } = new AbortController();
  assert.equal(await book.ended(WORKSPACE, runId, 1, signal), false);
  const leaving = new AbortController();
  const left = book.ended(WORKSPACE, runId, 60_000, leaving.signal);
  leaving.abort();
  assert.equal(await left, false);
  assert.equal(await book.ended(WORKSPACE, runId, 60_000, leaving.signal), false, 'left before');
  let isOver = false;
  const waiting = book.ended(WORKSPACE, runId, 60_000, signal).then((over) => {
    isOver = over;
    return store.durable();
  });
  await store.durable();
  book.finish(WORKSPACE, runId, COMPLETED);
  await Promise.resolve();
  assert.equal(isOver, false);
  assert.equal(await waiting, undefined, 'the end is on disk');
  assert.deepEqual([isOver, await book.ended(WORKSPACE, runId, 60_000, signal)], [true, true]);
  assert.throws(() => book.ended(WORKSPACE, 'run_0', 1, signal), refusedWith('not_found'));
});

test('the runs of a session are listed oldest first in pages, without runs of other sessions', async (t) => {
  const { store } = await temporaryStore(t);
  const { book } = openBook(t, store);
  const ids = ['nb_1', 'nb_1', 'nb_10', 'nb_1'].map(
    (session) => book.begin({ ...RUN, sessionId: session as SessionId }).runId,
  );
  await store.durable();
  const page = async (after: string | undefined, limit: number) => {
    const json = await book.reader.list(WORKSPACE, { sessionId: SESSION, kind: 'notebook', after, limit });
    const { items, nextCursor } = JSON.parse(Buffer.from(json).toString());
    return [items.map(({ id }: RunDocument) => ids.indexOf(id)), ids.indexOf(nextCursor)];
  };
  assert.deepEqual(
    [await page(undefined, 2), await page(ids[1], 2), await page(ids[3], 2)],
    [
      [[0, 1], 1],
      [[3], -1],
      [[], -1],
    ],
  );
  assert.equal(book.reader.latest(WORKSPACE, SESSION)?.id, ids[3]);
  assert.equal(book.reader.latest(WORKSPACE, 'nb_2'), undefined);
  assert.deepEqual(await page(ids[2], 2), [[3], -1], 'a cursor is a place, of whatever session');
  await assert.rejects(page('nb_1', 2), refusedWith('invalid_cursor'));
});

test('the runs of a session with one status are found without reading its other runs', async (t) => {
  const { store } = await temporaryStore(t);
  const { book } = openBook(t, store);
  const begin = (sessionId = SESSION, kind: RunKind = 'notebook') =>
    book.begin({ ...RUN, sessionId, kind }).runId;
  const runs = Array.from({ length: 60 }, () => begin());
  const agents = begin(SESSION, 'agent');
  const elsewhere = begin('nb_2' as SessionId);
  const [first, last] = [runs[20]!, runs[50]!];
  for (const run of runs.slice(0, -1))
    book.finish(WORKSPACE, run, run === first || run === last ? FAILED : COMPLETED);
  for (const run of [agents, elsewhere]) book.finish(WORKSPACE, run, FAILED);
  await store.durable();
  const reads = t.mock.method(store, 'get');
  const found = async (query: Partial<RunQuery>) => {
    reads.mock.resetCalls();
    const { items } = JSON.parse(
      Buffer.from(await book.reader.list(WORKSPACE, { sessionId: SESSION, limit: 10, ...query })).toString(),
    );
    const looked = reads.mock.calls.filter(({ arguments: [kind] }) => kind.name === runIndex.name).length;
    return { ids: items.map(({ id }: RunDocument) => id), looked };
  };
  assert.deepEqual(await found({ status: 'failed' }), { ids: [first, last, agents], looked: 3 });
  assert.deepEqual(await found({ status: 'failed', kind: 'notebook', order: 'desc' }), {
    ids: [last, first],
    looked: 2,
  });
  assert.deepEqual(await found({ status: 'cancelled' }), { ids: [], looked: 0 });
  assert.deepEqual(await found({ status: 'running' }), { ids: [runs.at(-1)], looked: 1 });
});

test('the runs of a user, and the runs that ended in an interval, are found without reading other runs', async (t) => {
  const { store } = await temporaryStore(t);
  const { book } = openBook(t, store);
  const begin = (by: string) => book.begin({ ...RUN, createdBy: by }).runId;
  for (let n = 0; n < 60; n++) book.finish(WORKSPACE, begin('ada'), COMPLETED);
  const [first, second] = [begin('bob'), begin('bob')];
  const later = timeOfId(second) + 60_000; // another test of this process may have moved the time of new ids ahead of the clock
  t.mock.method(Date, 'now', () => later);
  for (const run of [second, first]) book.finish(WORKSPACE, run, FAILED);
  await store.durable();
  const reads = t.mock.method(store, 'get');
  const found = async (query: Partial<RunQuery>) => {
    reads.mock.resetCalls();
    const page = await book.reader.list(WORKSPACE, { limit: 10, ...query });
    const { items } = JSON.parse(Buffer.from(page).toString()) as { items: RunDocument[] };
    const looked = reads.mock.calls.filter(({ arguments: [kind] }) => kind.name === runIndex.name).length;
    return { ids: items.map(({ id }) => id), looked };
  };
  const { finishedAt } = shown(book, second);
  assert.ok(finishedAt !== null);
  assert.deepEqual(await found({ createdBy: 'bob' }), { ids: [first, second], looked: 2 });
  const ended = await found({ finishedAfter: finishedAt });
  assert.deepEqual([ended.ids.toSorted(), ended.looked], [[first, second], 2]);
  assert.deepEqual(await found({ finishedAfter: finishedAt, finishedBefore: finishedAt }), {
    ids: [],
    looked: 0,
  });
  assert.deepEqual(await found({ finishedBefore: '2020-01-01T00:00:00Z' }), { ids: [], looked: 0 });
  assert.deepEqual(await found({ status: ['failed', 'running'] }), { ids: [first, second], looked: 2 });
});

test("a run's places by user and by end are written with its beginning and its end, and go with the run", async (t) => {
  const { store } = await temporaryStore(t);
  const { book } = openBook(t, store);
  const removals = new Removals(store, (error) => assert.ifError(error));
  const deletion = new RunDeletion(store, book, removals);
  let flushes = 0;
  store.onFlushed(() => flushes++);
  const counts = () =>
    [userRuns, endPlaces].map((kind) => [...store.listKeys(kind, WORKSPACE, [], 10)].length);
  const { runId } = book.begin({ ...RUN, createdBy: 'ada' });
  await store.durable();
  assert.deepEqual([flushes, ...counts()], [1, 1, 0]);
  book.finish(WORKSPACE, runId, COMPLETED);
  await store.durable();
  assert.deepEqual([flushes, ...counts()], [2, 1, 1]);
  deletion.deleteEnded(WORKSPACE, [runId]);
  await store.durable();
  assert.deepEqual(counts(), [0, 0]);
});

function openBook(t: TestContext, store: Store) {
  const actors = new ActorRuntime(store, rememberingLog().log);
  t.after(() => actors.stopAll());
  const book = new RunRepository(store, actors);
  const notices: unknown[] = [];
  book.actors.on((_, { status }) => notices.push(status));
  return { book, actors, notices };
}

function shown(book: RunRepository, runId: RunId): RunDocument {
  return JSON.parse(Buffer.from(book.reader.json(WORKSPACE, runId)).toString());
}

function withoutEnd<T extends { finishedAt: unknown }>({ finishedAt, ...rest }: T): Omit<T, 'finishedAt'> {
  return rest;
}

function refusedWith(code: string) {
  return (error: unknown) => error instanceof AppError && error.code === code;
}
