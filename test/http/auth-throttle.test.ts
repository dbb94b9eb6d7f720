import assert from 'node:assert/strict';
import test from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import { AuthThrottle } from '#src/http/edge/auth-throttle.ts';
import { ConnectionLimit } from '#src/http/edge/connection-limit.ts';
import { json } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { GOOD, send, serve } from './test-server.ts';

const refusal = new AppError('unauthenticated', 'No.');

function guardAt(seconds: { now: number }, workers = 1) {
  const guard = new AuthThrottle(() => seconds.now, workers);
  return {
    guard,
    tryFrom: (address: string) => {
      const { code, extras } = guard.recordFailure(address, refusal);
      return extras.headers === undefined ? code : `${code} ${extras.headers['retry-after']}`;
    },
  };
}

test('a few dozen wrong tokens are refused at once, and further wrong tokens have to wait, up to a minute', () => {
  const clock = { now: 0 };
  const { tryFrom } = guardAt(clock);
  const answers = Array.from({ length: 52 }, () => tryFrom('10.0.0.1'));
  assert.deepEqual(answers.slice(-3), ['unauthenticated', 'too_many_attempts 1', 'too_many_attempts 2']);
  for (let more = 0; more < 100; more++) tryFrom('10.0.0.1');
  assert.equal(tryFrom('10.0.0.1'), 'too_many_attempts 60');
  assert.equal(tryFrom('10.0.0.2'), 'unauthenticated', 'another address has a bucket of its own');
  clock.now = 61;
  assert.equal(tryFrom('10.0.0.1'), 'unauthenticated');
});

test('each of several workers allows its share of wrong tokens, and at least one', () => {
  const clock = { now: 0 };
  const { tryFrom } = guardAt(clock, 4);
  const answers = Array.from({ length: 14 }, () => tryFrom('10.0.0.1'));
  assert.deepEqual(answers.slice(-3), ['unauthenticated', 'too_many_attempts 4', 'too_many_attempts 8']);
  for (let more = 0; more < 100; more++) tryFrom('10.0.0.1');
  assert.equal(tryFrom('10.0.0.1'), 'too_many_attempts 60');
  clock.now = 64;
  assert.equal(tryFrom('10.0.0.1'), 'unauthenticated');
  const many = guardAt(clock, 64).tryFrom;
  assert.deepEqual([many('10.0.0.1'), many('10.0.0.1')], ['unauthenticated', 'too_many_attempts 60']);
});

test('each of several workers has its share of the connections, and at least one', () => {
  const limits = [1, 3, 20].map((workers) => new ConnectionLimit(10, workers).limit);
  assert.deepEqual(limits, [10, 3, 1]);
  assert.equal(
    new ConnectionLimit(0, 3).limit,
    new ConnectionLimit().limit,
    'open files are those of a process',
  );
});

test('requests without a token are counted by limits of their own', () => {
  const clock = { now: 0 };
  const limits = { free: 20, perS: 10, refusal: 'Too many.' };
  const throttle = new AuthThrottle(() => clock.now, 1, limits);
  const refusalOf = (address: string) => {
    try {
      throttle.count(address);
      return undefined;
    } catch (error) {
      assert.ok(error instanceof AppError);
      return `${error.code} ${error.extras.headers?.['retry-after']} ${error.message}`;
    }
  };
  for (let count = 0; count < limits.free; count++) assert.equal(refusalOf('10.0.0.1'), undefined);
  assert.equal(refusalOf('10.0.0.1'), 'too_many_attempts 1 Too many.');
  assert.equal(refusalOf('10.0.0.2'), undefined, 'another address has a bucket of its own');
  clock.now = 1;
  for (let count = 0; count < limits.perS - 1; count++) assert.equal(refusalOf('10.0.0.1'), undefined);
  assert.equal(refusalOf('10.0.0.1'), 'too_many_attempts 1 Too many.');
});

test('an IPv6 network counts as one address, and an IPv4 address is the same in both spellings', () => {
  const { guard, tryFrom } = guardAt({ now: 0 });
  for (const address of ['2001:db8:0:1::1', '2001:db8:0:1::2', '::ffff:10.0.0.1', '10.0.0.1'])
    tryFrom(address);
  assert.equal(guard.size, 2);
});

test('the throttle remembers a bounded number of addresses', () => {
  const { guard, tryFrom } = guardAt({ now: 0 });
  for (let n = 0; n < 12_000; n++) tryFrom(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  assert.equal(guard.size, 10_000);
});

test('over HTTP the answer is 429 with Retry-After, and a valid token never has to wait', async (t) => {
  const route = defineRoute({
    method: 'GET',
    path: '/thing',
    operationId: 'getThing',
    summary: 'A thing',
    tags: [],
    access: { action: 'thing.use' },
    responses: { 200: { description: 'It.' } },
    handle: () => json(200, {}),
  });
  const server = await serve(t, [route]);
  const wrong = { ...GOOD, authorization: 'Bearer wrong' };
  for (let n = 0; n < 50; n++) assert.equal((await send(server, '/thing', { headers: wrong })).status, 401);
  const { status, code, headers } = await send(server, '/thing', { headers: wrong });
  assert.deepEqual([status, code, headers['retry-after']], [429, 'too_many_attempts', '1']);
  assert.equal(
    (await send(server, '/thing', { headers: {} })).status,
    401,
    'without a token nothing is tried',
  );
  assert.equal((await send(server, '/thing')).status, 200);
});
