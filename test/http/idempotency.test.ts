import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import test from 'node:test';
import Type from 'typebox';
import { AppError } from '#src/base/errors/errors.ts';
import type { Idempotency, IdempotentRequest, StoredReply } from '#src/http/idempotency/idempotency.ts';
import { created, noContent, ok, type Reply } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { deferred } from '#test/support/deferred.ts';
import { NO_STORE } from './http-defaults.ts';
import { JSON_BODY, send, serve, type TestServer } from './test-server.ts';

/** Keeps records in memory and remembers its calls, in order. */
class MemoryReceipts implements Idempotency {
  readonly log: string[] = [];
  readonly requests: IdempotentRequest[] = [];
  readonly #receipts = new Map<string, { readonly hash: string; reply: StoredReply | undefined }>();

  begin(request: IdempotentRequest): ReturnType<Idempotency['begin']> {
    this.requests.push(request);
    const place = [request.workspaceId, request.method, request.path, request.key].join(' ');
    const hash = Buffer.from(request.bodyHash).toString('hex');
    const known = this.#receipts.get(place);
    if (known !== undefined && known.hash !== hash)
      throw new AppError('idempotency_key_reused', 'Another body.');
    if (known !== undefined && known.reply === undefined)
      throw new AppError('idempotency_in_progress', 'Still running.');
    if (known?.reply !== undefined) return { kind: 'replay', reply: known.reply };
    const receipt: { readonly hash: string; reply: StoredReply | undefined } = { hash, reply: undefined };
    this.#receipts.set(place, receipt);
    return {
      kind: 'proceed',
      complete: (reply) => {
        this.log.push(`complete ${reply.status}`);
        receipt.reply = reply;
      },
      abandon: () => {
        this.log.push('abandon');
        this.#receipts.delete(place);
      },
    };
  }
}

const thing = (handle: () => Reply | Promise<Reply>) =>
  defineRoute({
    method: 'POST',
    path: '/things/:thingId',
    operationId: 'make',
    summary: 's',
    tags: [],
    access: { action: 'thing.use' },
    responses: { 201: { description: 'd' } },
    body: Type.Object({ name: Type.String() }),
    handle,
  });

const post = (server: TestServer, key: string | undefined, name = 'n', path = '/things/1') =>
  send(server, path, {
    method: 'POST',
    headers: { ...JSON_BODY, ...(key === undefined ? {} : { 'idempotency-key': key }) },
    body: JSON.stringify({ name }),
  });

test('the same key and body get the first answer again, and nothing is done twice', async (t) => {
  let count = 0;
  const idempotency = new MemoryReceipts();
  const server = await serve(t, [thing(() => created({ count: ++count }, `/things/${count}`))], {
    idempotency,
  });
  const first = await post(server, 'key');
  const second = await post(server, 'key');
  const shown = ({ status, headers, text }: typeof first) => [
    status,
    headers.location,
    headers['content-type'],
    text,
  ];
  assert.deepEqual(shown(second), shown(first));
  assert.deepEqual(
    [first.headers['idempotency-replayed'], second.headers['idempotency-replayed']],
    [undefined, 'true'],
  );
  assert.equal((await post(server, 'other')).text, '{"count":2}');
  assert.equal((await post(server, undefined)).text, '{"count":3}');
  assert.equal((await post(server, 'key', 'n', '/things/2')).text, '{"count":4}');
});

test('the store gets workspace, user, method, path and key, and the raw body hashed with the key', async (t) => {
  const idempotency = new MemoryReceipts();
  const server = await serve(t, [thing(() => ok({}))], { idempotency });
  await post(server, 'key', 'ä', '/things/a%40b?');
  assert.deepEqual(
    idempotency.requests.map((request) => ({
      ...request,
      bodyHash: Buffer.from(request.bodyHash).toString('hex'),
    })),
    [
      {
        workspaceId: 'ws_1',
        userId: 'ada',
        method: 'POST',
        path: '/things/a@b',
        key: 'key',
        bodyHash: createHmac('sha256', 'key').update('{"name":"ä"}').digest('hex'),
        credential: undefined,
        isShared: false,
      },
    ],
  );
});

test('if the answer contains a secret, the store gets the credential that seals the answer', async (t) => {
  const idempotency = new MemoryReceipts();
  const server = await serve(t, [{ ...thing(() => ok({})), secretAnswer: true }], { idempotency });
  await post(server, 'key');
  assert.equal(idempotency.requests[0]?.credential, 'Bearer good');
});

test('the same key is refused with another body, and while the first request is still running', async (t) => {
  const running = deferred<Reply>();
  const idempotency = new MemoryReceipts();
  const server = await serve(t, [thing(() => running.promise)], { idempotency });
  const first = post(server, 'key');
  while (idempotency.requests.length === 0) await post(server, undefined, 'n', '/nothing');
  assert.equal((await post(server, 'key')).code, 'idempotency_in_progress');
  assert.equal((await post(server, 'key', 'else')).code, 'idempotency_key_reused');
  running.resolve(ok({ done: true }));
  assert.deepEqual((await first).json, { done: true });
  assert.deepEqual((await post(server, 'key')).json, { done: true });
});

test('a refused request is not recorded and may be sent again', async (t) => {
  const outcomes: (() => Reply)[] = [
    () => {
      throw new AppError('session_busy', 'Busy.');
    },
    () => ({ kind: 'json', status: 400, value: { ok: false } }),
    () => {
      throw new Error('bug');
    },
    () => noContent(),
  ];
  const idempotency = new MemoryReceipts();
  const server = await serve(t, [thing(() => outcomes.shift()!())], { idempotency });
  const statuses = [];
  for (let i = 0; i < 5; i++) statuses.push((await post(server, 'key')).status);
  assert.deepEqual(statuses, [409, 400, 500, 204, 204]);
  assert.deepEqual(idempotency.log, ['abandon', 'abandon', 'abandon', 'complete 204']);
});

test('a change that is stored but answered with 503 is not repeated by a retry with its key', async (t) => {
  const idempotency = new MemoryReceipts();
  const { log } = idempotency;
  const server = await serve(
    t,
    [
      thing(async () => {
        await Promise.resolve();
        setImmediate(() => log.push('next turn'));
        log.push('handled');
        return created({}, '/things/1');
      }),
    ],
    {
      idempotency,
      durable: () => {
        log.push('durable');
        return Promise.resolve();
      },
    },
  );
  await post(server, 'key');
  assert.deepEqual(log, ['handled', 'complete 201', 'durable', 'next turn']);
});

test('a change that is stored but answered with 503 is not made again by a retry with its key', async (t) => {
  let count = 0;
  const failures = [new AppError('unavailable', 'The change is stored.')];
  const server = await serve(t, [thing(() => created({ count: ++count }, '/things/1'))], {
    idempotency: new MemoryReceipts(),
    durable: async () => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
    },
  });
  assert.equal((await post(server, 'key')).status, 503);
  const { status, text, headers } = await post(server, 'key');
  assert.deepEqual([status, text, headers['idempotency-replayed']], [201, '{"count":1}', 'true']);
});

test('a key is 1 to 255 visible ASCII characters', async (t) => {
  const server = await serve(t, [thing(() => ok({}))], { idempotency: new MemoryReceipts() });
  const codes = (keys: readonly string[]) =>
    Promise.all(keys.map(async (key) => (await post(server, key)).code));
  assert.deepEqual(await codes(['a'.repeat(255), '!~']), [undefined, undefined]);
  const refused = ['a'.repeat(256), 'a b', 'ä', ''];
  assert.deepEqual(
    await codes(refused),
    refused.map(() => 'invalid_request'),
  );
});

test('a request is identified by the sent body, even if its shared turn begins later', async (t) => {
  const idempotency = new MemoryReceipts();
  const decisions: (() => void)[] = [];
  const isDue = deferred();
  const decide = (decision: () => void): void => {
    if (decisions.push(decision) === 2) isDue.resolve();
  };
  const route = { ...thing(() => created({}, '/things/1')), sharedTurn: true };
  const server = await serve(t, [route], { idempotency, store: { ...NO_STORE, decide } });
  const both = Promise.all([post(server, 'a', 'first'), post(server, 'b', 'other')]);
  await isDue.promise;
  for (const decision of decisions) decision();
  await both;
  const hashes = idempotency.requests.map(({ bodyHash }) => Buffer.from(bodyHash).toString('hex'));
  const hashOf = (key: string, name: string) =>
    createHmac('sha256', key).update(JSON.stringify({ name })).digest('hex');
  assert.deepEqual(hashes.sort(), [hashOf('a', 'first'), hashOf('b', 'other')].sort());
});
