import assert from 'node:assert/strict';
import test from 'node:test';
import type { TokenId, UserId, WorkspaceId } from '#src/base/ids.ts';
import { CallerCache, type KnownCaller } from '#src/people/auth/caller-cache.ts';

test('a caller is found by its token and its workspace, until it is forgotten', () => {
  const cache = new CallerCache(10);
  const [home, lab] = [callerIn('home'), callerIn('lab')];
  cache.keep('token', 'home', home);
  cache.keep('token', 'lab', lab);
  assert.deepEqual([cache.find('token', 'home'), cache.find('token', 'lab')], [home, lab]);
  assert.deepEqual([cache.find('token', 'ward'), cache.find('other', 'home')], [undefined, undefined]);
  cache.forget('token', 'home');
  assert.deepEqual([cache.find('token', 'home'), cache.find('token', 'lab')], [undefined, lab]);
  cache.clear();
  assert.equal(cache.find('token', 'lab'), undefined);
});

test('no more callers are kept than the limit, and the callers of the oldest token are dropped first', () => {
  const cache = new CallerCache(3);
  for (const workspace of ['home', 'lab']) cache.keep('first', workspace, callerIn(workspace));
  cache.keep('second', 'home', callerIn('home'));
  cache.keep('second', 'home', callerIn('home')); // in place of the one before
  assert.notEqual(cache.find('first', 'home'), undefined);
  cache.keep('third', 'home', callerIn('home'));
  const places = ['first', 'second', 'third'].map((token) => cache.find(token, 'home') !== undefined);
  assert.deepEqual(places, [false, true, true]);
  assert.equal(cache.find('first', 'lab'), undefined);
});

test('a token with more workspaces than the limit keeps its latest callers', () => {
  const cache = new CallerCache(3);
  const workspaces = Array.from({ length: 20 }, (_, n) => `w${n}`);
  for (const workspace of workspaces) {
    cache.keep('token', workspace, callerIn(workspace));
    assert.equal(cache.find('token', workspace)?.principal.workspaceId, workspace);
  }
  const kept = workspaces.filter((workspace) => cache.find('token', workspace) !== undefined);
  assert.ok(kept.length <= 3, kept.join(', '));
});

function callerIn(workspaceId: string): KnownCaller {
  const ids = {
    workspaceId: workspaceId as WorkspaceId,
    userId: 'ada' as UserId,
    tokenId: 'token_1' as TokenId,
  };
  const principal = { ...ids, role: 'editor', scopes: [] } as const;
  return { principal, expiresAtMs: Number.POSITIVE_INFINITY, isSession: false };
}
