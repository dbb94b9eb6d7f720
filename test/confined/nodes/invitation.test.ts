import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import test from 'node:test';
import { Invitations, parseInvitation } from '#src/confined/nodes/invitation.ts';

const authority = randomBytes(32);
const secretOf = (code: string) => parseInvitation(`host:1#${code}`)!.secret.toString('base64url');

test('an invitation names the server and its authority', () => {
  const { code } = new Invitations(authority).make();
  const found = parseInvitation(` server.example:8790#${code}\n`)!;
  assert.deepEqual([found.host, found.port], ['server.example', 8790]);
  assert(found.authority.equals(authority));
  assert.equal(parseInvitation(`[2001:db8::1]:8790#${code}`)?.host, '2001:db8::1');
});

test('a text that is not an invitation is rejected', () => {
  const { code } = new Invitations(authority).make();
  for (const text of [
    '',
    'host',
    'host:1',
    `host:0#${code}`,
    `host:65536#${code}`,
    `host:1#${code}x`,
    `host:1#${code}#`,
    `ho st:1#${code}`,
  ])
    assert.equal(parseInvitation(text), undefined, text);
});

test('an invitation works once', () => {
  const invitations = new Invitations(authority);
  const secret = secretOf(invitations.make().code);
  assert.deepEqual(invitations.use(secret), { name: undefined });
  assert.equal(invitations.use(secret), undefined);
  assert.equal(invitations.use(randomBytes(16).toString('base64url')), undefined);
});

test('an invitation works for 15 minutes', () => {
  const invitations = new Invitations(authority);
  const [used, late] = [invitations.make(0), invitations.make(0)];
  assert.equal(used.expiresAt, new Date(15 * 60_000).toISOString());
  assert.notEqual(invitations.use(secretOf(used.code), 15 * 60_000 - 1), undefined);
  assert.equal(invitations.use(secretOf(late.code), 15 * 60_000), undefined);
});

test('a thousand invitations can be open, and one more ends the oldest', () => {
  const invitations = new Invitations(authority);
  const secrets = Array.from({ length: 1001 }, () => secretOf(invitations.make().code));
  assert.deepEqual(
    [secrets[0], secrets[1], secrets[1000]].map((secret) => invitations.use(secret!) !== undefined),
    [false, true, true],
  );
});
