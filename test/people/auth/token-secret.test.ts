import assert from 'node:assert/strict';
import test from 'node:test';
import { bearerToken, newTokenSecret } from '#src/people/auth/token-secret.ts';

test('a bearer token has 16 to 256 visible characters of ASCII', () => {
  const taken = (token: string) => bearerToken(`Bearer ${token}`) === token;
  assert.ok(taken(newTokenSecret().reveal()));
  for (const length of [16, 256]) assert.ok(taken('~'.repeat(length)));
  for (const length of [0, 15, 257]) assert.ok(!taken('~'.repeat(length)));
  for (const wrong of ['\u007f', ' ', '\n', 'é', '\0']) {
    assert.ok(!taken(`${'a'.repeat(20)}${wrong}`));
    assert.ok(!taken(`${'a'.repeat(8)}${wrong}${'a'.repeat(8)}`));
  }
});

test('the scheme is Bearer in any case, and the spaces after it do not matter', () => {
  const token = 'a'.repeat(16);
  for (const header of [`Bearer ${token}`, `bEARER   ${token}`]) assert.equal(bearerToken(header), token);
  for (const header of ['', token, `Bearer${token}`, `Basic ${token}`, `Bearer`, `Bearer `])
    assert.equal(bearerToken(header), undefined);
});
