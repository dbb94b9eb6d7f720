import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SCOPES } from '#src/contract/wire/identity.ts';
import { openWorkers, refusalOf, TOKEN } from './identity-workers.ts';

test('a token that one worker revokes is refused by every worker before the revocation is answered', async (t) => {
  const [first, second] = await openWorkers(t, () => 0);
  const owner = first.enter(TOKEN);
  const { token, secret } = first.identity.tokens.create(owner, { name: 'x', scopes: SCOPES });
  await first.identity.durable();
  assert.equal(second.enter(secret.reveal()).tokenId, token.id, 'a new token is known everywhere');
  const checksBefore = second.checks();
  first.identity.tokens.revoke(owner, token.id);
  const known = first.identity.durable();
  assert.equal(second.enter(secret.reveal()).tokenId, token.id, 'it is cached until then');
  await known;
  assert.equal(
    refusalOf(() => second.enter(secret.reveal())),
    'unauthenticated',
  );
  assert.ok(second.checks() > checksBefore, 'what it has open is looked at');
});

test('a role that one worker changes applies in every worker', async (t) => {
  const [first, second] = await openWorkers(t, () => 0);
  const owner = first.enter(TOKEN);
  first.identity.members.add(owner.workspaceId, 'ann', { role: 'editor' });
  const { secret } = first.identity.tokens.create(owner, { name: 'x', scopes: SCOPES, userId: 'ann' });
  await first.identity.durable();
  assert.equal(second.enter(secret.reveal()).role, 'editor');
  first.identity.members.change(owner.workspaceId, 'ann', { role: 'viewer' });
  await first.identity.durable();
  assert.equal(second.enter(secret.reveal()).role, 'viewer');
});

test('a change is not answered before every worker applies it, and a change that touches no identity asks no worker', async (t) => {
  const [first, second] = await openWorkers(t, () => 0);
  const owner = first.enter(TOKEN);
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  second.cluster.onAsked('identity-changed', () => held.then(() => true));
  first.identity.members.add(owner.workspaceId, 'ann', { role: 'editor' });
  let isKnown = false;
  const known = first.identity.durable()?.then(() => {
    isKnown = true;
  });
  while (second.cluster.asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([isKnown, second.cluster.asked], [false, ['identity-changed']]);
  release();
  await known;
  assert.equal(isKnown, true);
  assert.equal(first.identity.durable(), undefined);
  assert.equal(second.cluster.asked.length, 1);
});
