/** When the identity provider is asked about people: who is first, and for how long it is left alone. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'node:test';
import { Secret } from '#src/base/caller/secret.ts';
import { IdentityProvider, ProviderFailure } from '#src/people/auth/provider/identity-provider.ts';
import { ProviderChecks } from '#src/people/auth/provider/provider-checks.ts';
import type { ProviderContext } from '#src/people/auth/provider/provider-context.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { testContext } from '#test/support/test-context.ts';

const EVERY_MS = 30_000;

/** Begins checks of these people, with the times of their last checks, and a clock that the test moves. */
function begin(checkedAtMs: Record<string, number>, renew: (subject: string) => Promise<unknown>) {
  const asked: string[] = [];
  const clock = { nowMs: 1_000_000 };
  const account = (subject: string) => ({ subject, isActive: true, checkedAtMs: checkedAtMs[subject] ?? 0 });
  const parts = testContext<ProviderContext>({
    identity: {
      nowMs: () => clock.nowMs,
      store: { refresh() {}, decide: (decision: () => void) => decision() },
      durable: async () => {},
    },
    provider: {
      async renew(subject: string) {
        asked.push(subject);
        return renew(subject);
      },
    },
    accounts: {
      active: () => Object.keys(checkedAtMs).map((userId) => ({ userId, account: account(userId) })),
      read: account,
      tokensOf: () => ({ refreshToken: new Secret('used'), idToken: undefined }),
      renew: (userId: string) => {
        checkedAtMs[userId] = clock.nowMs;
      },
    },
  });
  const context = testContext<PlaneContext>({
    config: { oidcCheckS: EVERY_MS / 1000 },
    cluster: ALONE,
    log: { info() {}, warn() {} },
  });
  const checks = new ProviderChecks(parts, context);
  return { checks, asked, clock };
}

test('after a provider has reported too many requests, the server pauses for the time that the provider names, and then asks about the remaining people', async () => {
  let isFull = false;
  const people = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`p${at}`, at]));
  const { checks, asked, clock } = begin(people, async () => {
    if (asked.length >= 8) isFull = true;
    if (isFull) throw new ProviderFailure('full', { pauseMs: 60_000 });
  });
  await checks.check();
  const first = asked.splice(0);
  assert.ok(first.length >= 8 && first.length < 8 + 4, `${first.length} were asked about`);
  assert.deepEqual(first.slice(0, 8), ['p0', 'p1', 'p2', 'p3', 'p4', 'p5', 'p6', 'p7']);
  isFull = false;
  clock.nowMs += 59_999;
  await checks.check();
  assert.equal(asked.length, 0);
  clock.nowMs += 1;
  await checks.check();
  assert.equal(asked[0], first[7], 'the first who got no answer');
  assert.ok(!new Set<string>(asked.slice(0, 8)).has('p0'), 'a person with an answer comes after the others');
  checks[Symbol.dispose]();
});

test('a provider is left alone for the time in Retry-After, for 30 s without that header, and for five minutes at most', async (t) => {
  let answer: [number, Record<string, string>] = [500, {}];
  const server = http.createServer((_, res) => res.writeHead(...answer).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const provider = IdentityProvider.of({
    oidcIssuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    oidcClientId: 'troupe',
    oidcClientSecretFile: undefined,
    oidcScopes: 'openid',
    oidcParameters: '',
    oidcUserClaim: 'email',
    oidcGroupsClaim: 'groups',
    oidcRoles: [],
    oidcName: 'Example',
    oidcCheckS: 30,
  });
  const pauseAfter = async (status: number, headers: Record<string, string> = {}) => {
    answer = [status, headers];
    const failure: unknown = await provider?.renew('ada', new Secret('used')).catch((error) => error);
    assert.ok(failure instanceof ProviderFailure, String(failure));
    return failure.pauseMs;
  };
  assert.equal(await pauseAfter(429, { 'retry-after': '7' }), 7_000);
  assert.equal(await pauseAfter(503, { 'retry-after': '300' }), 300_000);
  assert.equal(await pauseAfter(503, { 'retry-after': '301' }), 300_000);
  assert.equal(await pauseAfter(429), 30_000);
  assert.equal(await pauseAfter(429, { 'retry-after': 'soon' }), 30_000);
  const inHours = new Date(Date.now() + 7_200_000).toUTCString();
  assert.equal(await pauseAfter(429, { 'retry-after': inHours }), 300_000);
  assert.equal(await pauseAfter(429, { 'retry-after': new Date(0).toUTCString() }), 0);
  assert.equal(await pauseAfter(503), undefined);
  assert.equal(await pauseAfter(500, { 'retry-after': '7' }), undefined);
});
