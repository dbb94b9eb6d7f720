import assert from 'node:assert/strict';
import test from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import { CommandLineSignIns } from '#src/people/auth/command-line-sign-ins.ts';
import { AccessTokens } from '#src/people/auth/tokens.ts';
import { openIdentity } from './identity-fixture.ts';

const TEN_MINUTES_MS = 10 * 60_000;
const isCode = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;
const asking = (address = '192.0.2.1') => ({ machine: 'ada@laptop', address });

test('a code is valid for ten minutes, and an expired one makes room for others', async (t) => {
  const { identity, authenticator, tokens, owner, clock } = await openIdentity(t);
  const signIns = new CommandLineSignIns(identity, authenticator, tokens);
  const { secret, code } = signIns.begin(asking());
  clock.ms += TEN_MINUTES_MS - 1;
  assert.equal(signIns.read(code).machine, 'ada@laptop');
  assert.deepEqual(signIns.fetch(secret), { status: 'waiting' });
  clock.ms += 1;
  assert.throws(() => signIns.read(code), isCode('not_found'));
  assert.throws(() => signIns.decide(owner, code, true), isCode('not_found'));
  assert.deepEqual(signIns.fetch(secret), { status: 'ended' });
  for (let i = 0; i < 10; i++) signIns.begin(asking());
  assert.throws(() => signIns.begin(asking()), isCode('too_many_attempts'));
  signIns.begin(asking('192.0.2.2'));
  clock.ms += TEN_MINUTES_MS;
  signIns.begin(asking());
});

test('a confirmation that is fetched too late creates no token', async (t) => {
  const { identity, authenticator, tokens, owner, clock } = await openIdentity(t);
  const signIns = new CommandLineSignIns(identity, authenticator, tokens);
  const { secret, code } = signIns.begin(asking());
  signIns.decide(owner, code, true);
  clock.ms += TEN_MINUTES_MS;
  assert.deepEqual(signIns.fetch(secret), { status: 'ended' });
});

test('at most a thousand command lines wait at once, over all addresses', async (t) => {
  const { identity, authenticator, tokens } = await openIdentity(t);
  const signIns = new CommandLineSignIns(identity, authenticator, tokens);
  for (let i = 0; i < 1000; i++) signIns.begin(asking(`198.51.${Math.floor(i / 250)}.${i % 250}`));
  assert.throws(() => signIns.begin(asking('203.0.113.1')), isCode('too_many_attempts'));
});

test("the token has the person's scopes for a workspace, and expires after 90 days", async (t) => {
  const { identity, authenticator, tokens, owner, join, clock } = await openIdentity(t);
  const signIns = new CommandLineSignIns(identity, authenticator, tokens);
  const reader = join('reader', 'viewer', ['datasource:read']);
  const made = (principal: typeof owner) => {
    const { secret, code } = signIns.begin(asking());
    signIns.decide(principal, code, true);
    const outcome = signIns.fetch(secret);
    assert.ok(outcome.status === 'confirmed');
    return outcome.token;
  };
  assert.deepEqual(made(reader.principal).scopes, ['datasource:read']);
  assert.deepEqual(made(owner).scopes, ['workspaceRuntime:connect', 'datasource:read', 'workspace:manage']);
  assert.equal(Date.parse(made(owner).expiresAt ?? ''), clock.ms + 90 * 86_400_000);
});

test('where tokens live for thirty days at most, so does the token of a command line', async (t) => {
  const { identity, authenticator, owner, clock } = await openIdentity(t);
  const tokens = new AccessTokens(identity, 30);
  const signIns = new CommandLineSignIns(identity, authenticator, tokens);
  const { secret, code } = signIns.begin(asking());
  signIns.decide(owner, code, true);
  const outcome = signIns.fetch(secret);
  assert.ok(outcome.status === 'confirmed');
  assert.equal(Date.parse(outcome.token.expiresAt ?? ''), clock.ms + 30 * 86_400_000);
});
