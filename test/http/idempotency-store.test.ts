import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import type { UserId, WorkspaceId } from '#src/base/ids.ts';
import type { IdempotentRequest, StoredReply } from '#src/http/idempotency/idempotency.ts';
import { IdempotencyStore } from '#src/http/idempotency/idempotency-store.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import { SYSTEM } from '#storage/keys.ts';
import { openStore } from '#storage/open-store.ts';
import { idempotencyClaims, idempotencyExpiries, idempotencyRecords } from '#storage/records/idempotency.ts';
import { damage } from '#test/support/store/damage.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

const request = (over: Partial<IdempotentRequest> = {}, body = 'body'): IdempotentRequest => ({
  workspaceId: 'ws_1' as WorkspaceId,
  userId: 'ada' as UserId,
  method: 'POST',
  path: '/api/v3/notebooks',
  key: 'key',
  bodyHash: createHash('sha256').update(body).digest(),
  credential: undefined,
  ...over,
});

const reply = (text: string): StoredReply => ({
  status: 201,
  headers: { location: '/somewhere' },
  contentType: 'application/json',
  bytes: Buffer.from(text),
});

async function openBook(t: TestContext) {
  const path = mkdtempSync(join(tmpdir(), 'troupe-receipts-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  const clock = { ms: Date.parse('2026-01-01T00:00:00Z') };
  const open = async () => {
    const store = await openStore(path, (error) => assert.fail(error));
    const book = new IdempotencyStore(store, ALONE, () => clock.ms);
    return { store, book };
  };
  let current = await open();
  t.after(() => close());
  const close = async () => {
    current.book[Symbol.dispose]();
    await current.store[Symbol.asyncDispose]();
  };
  return {
    clock,
    path,
    get book() {
      return current.book;
    },
    get store() {
      return current.store;
    },
    /** `meanwhile` is called while the store is closed. */
    async reopen(meanwhile?: () => void) {
      await close();
      meanwhile?.();
      current = await open();
    },
  };
}

function complete(book: IdempotencyStore, of: IdempotentRequest, answer: StoredReply): void {
  const start = book.begin(of);
  assert.equal(start.kind, 'proceed');
  if (start.kind === 'proceed') start.complete(answer);
}

function replayed(book: IdempotencyStore, of: IdempotentRequest): string | undefined {
  const start = book.begin(of);
  if (start.kind === 'replay') return Buffer.from(start.reply.bytes).toString();
  start.abandon();
  return undefined;
}

test('a recorded reply is returned again, even after the store was reopened', async (t) => {
  const kept = await openBook(t);
  complete(kept.book, request(), reply('one'));
  assert.equal(replayed(kept.book, request()), 'one');
  await kept.reopen();
  const start = kept.book.begin(request());
  assert.ok(start.kind === 'replay');
  const { bytes, ...rest } = start.reply;
  assert.deepEqual(
    { ...rest, bytes: Buffer.from(bytes).toString() },
    { status: 201, headers: { location: '/somewhere' }, contentType: 'application/json', bytes: 'one' },
  );
});

test('a key with another body is refused; the same key with another workspace, user, method or path is another request', async (t) => {
  const { book } = await openBook(t);
  complete(book, request(), reply('one'));
  assert.throws(() => book.begin(request({}, 'other')), { code: 'idempotency_key_reused' });
  for (const other of [
    request({ workspaceId: 'ws_2' as WorkspaceId }),
    request({ userId: 'bob' as UserId }),
    request({ method: 'PUT' }),
    request({ path: '/api/v3/members' }),
    request({ key: 'key2' }),
  ]) {
    assert.equal(replayed(book, other), undefined);
  }
});

test('the key of a running request is refused, and can be used again once that request was abandoned', async (t) => {
  const { book } = await openBook(t);
  const first = book.begin(request());
  assert.throws(() => book.begin(request()), { code: 'idempotency_in_progress' });
  assert.throws(() => book.begin(request({}, 'other')), { code: 'idempotency_in_progress' });
  assert.ok(first.kind === 'proceed');
  first.abandon();
  assert.equal(replayed(book, request()), undefined);
});

test('a record expires after exactly a day, and then its key can be used again', async (t) => {
  const kept = await openBook(t);
  complete(kept.book, request(), reply('one'));
  await kept.store.durable();
  kept.clock.ms += DAY_MS - 1;
  await kept.book.sweep();
  assert.equal(replayed(kept.book, request()), 'one');
  kept.clock.ms += 1;
  complete(kept.book, request({}, 'other'), reply('two'));
  assert.equal(replayed(kept.book, request({}, 'other')), 'two');
});

test('expired records are removed, and keys used again since are kept', async (t) => {
  const kept = await openBook(t);
  complete(kept.book, request(), reply('one'));
  complete(kept.book, request({ key: 'again' }), reply('one'));
  kept.clock.ms += DAY_MS;
  complete(kept.book, request({ key: 'again' }), reply('two'));
  await kept.store.durable();
  await kept.book.sweep();
  await kept.store.durable();
  assert.equal([...kept.store.listKeys(idempotencyExpiries, SYSTEM, [], 10)].length, 1);
  assert.equal(replayed(kept.book, request()), undefined);
  assert.equal(replayed(kept.book, request({ key: 'again' })), 'two');
});

test('a sealed record can be opened for its caller only, and is nowhere in plain text', async (t) => {
  const kept = await openBook(t);
  const canary = 'canary-2f9c1e';
  const sealed = request({ credential: 'Bearer caller' });
  complete(kept.book, sealed, reply(`{"token":"${canary}"}`));
  await kept.reopen();
  assert.equal(replayed(kept.book, sealed), `{"token":"${canary}"}`);
  assert.throws(() => kept.book.begin(request({ credential: 'Bearer other' })), {
    code: 'idempotency_key_reused',
  });
  assert.throws(() => kept.book.begin(request()), { code: 'idempotency_key_reused' });
  await kept.store.durable();
  for (const file of readdirSync(kept.path)) {
    assert.equal(readFileSync(join(kept.path, file)).includes(canary), false, file);
  }
});

test('a sweep removes all expired records, in small commits', async (t) => {
  const kept = await openBook(t);
  for (let i = 0; i < 2_500; i++) complete(kept.book, request({ key: `key${i}` }), reply('one'));
  kept.clock.ms += DAY_MS;
  complete(kept.book, request({ key: 'later' }), reply('two'));
  await kept.store.durable();
  const left = () => [...kept.store.listKeys(idempotencyExpiries, SYSTEM, [], 10_000)].length;
  const sweep = kept.book.sweep();
  await kept.store.durable();
  assert.equal(left(), 2_301);
  await sweep;
  await kept.store.durable();
  assert.equal(left(), 1);
});

test('when several workers receive the same key, one living worker carries out the request', async (t) => {
  const { store } = await openBook(t);
  const living = new Set(['first', 'second']);
  const [first, second] = [...living].map((incarnation) => {
    const livesElsewhere = (other: string) => other !== incarnation && living.has(other);
    const book = new IdempotencyStore(store, { incarnation, livesElsewhere, owns: () => true });
    t.after(() => book[Symbol.dispose]());
    return book;
  });
  const shared = request({ isShared: true });
  const start = first!.begin(shared);
  assert.throws(() => second!.begin(shared), { code: 'idempotency_in_progress' });
  assert.throws(() => second!.begin(request({ isShared: true }, 'other')), {
    code: 'idempotency_in_progress',
  });
  assert.ok(start.kind === 'proceed');
  start.abandon();
  complete(second!, shared, reply('one'));
  assert.equal(replayed(first!, shared), 'one');
  assert.throws(() => first!.begin(request({ isShared: true }, 'other')), { code: 'idempotency_key_reused' });
});

test('the claim of a dead worker does not block the key, and is swept away', async (t) => {
  const kept = await openBook(t);
  const { store, clock } = kept;
  const worker = (incarnation: string) => {
    const cluster = { incarnation, livesElsewhere: () => false, owns: () => true };
    const book = new IdempotencyStore(store, cluster, () => clock.ms);
    t.after(() => book[Symbol.dispose]());
    return book;
  };
  const [used, unused] = ['used', 'unused'].map((key) => request({ key, isShared: true }));
  const dead = worker('dead');
  for (const one of [used!, unused!]) assert.equal(dead.begin(one).kind, 'proceed');
  clock.ms += 1;
  complete(worker('heir'), used!, reply('one'));
  assert.equal(replayed(kept.book, used!), 'one', 'the server may have one process now');
  await store.durable();
  clock.ms += DAY_MS;
  await kept.book.sweep();
  await store.durable();
  assert.equal([...store.listKeys(idempotencyExpiries, SYSTEM, [], 10)].length, 0);
  assert.equal([...store.listKeys(idempotencyClaims, 'ws_1', [], 10)].length, 0);
});

test('a damaged record that has expired is removed like any other', async (t) => {
  const book = await openBook(t);
  for (const key of ['a', 'b', 'c']) complete(book.book, request({ key }), reply(`the reply to ${key}`));
  await book.reopen(() => damage(join(book.path, 'data.mdb'), 'the reply to b'));
  book.clock.ms += 2 * DAY_MS;
  await book.book.sweep();
  await book.store.durable();
  assert.deepEqual([...book.store.listKeys(idempotencyExpiries, SYSTEM, [], 10)], []);
  assert.deepEqual([...book.store.listKeys(idempotencyRecords, SYSTEM, [], 10)], []);
});
