import assert from 'node:assert/strict';
import test from 'node:test';
import { ATTEMPT_S, SignInAttempts } from '#src/people/auth/provider/sign-in-attempts.ts';

const ATTEMPT = { state: 's'.repeat(43), nonce: 'n'.repeat(43), verifier: 'v'.repeat(43), to: '/n/nb_1/' };
const [FIRST, SECOND] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];

test('an attempt to sign in is readable for the server only, for ten minutes, and also after its keys were rotated', () => {
  const before = new SignInAttempts(() => ({ active: 'k1', keys: new Map([['k1', FIRST]]) }));
  const after = new SignInAttempts(() => ({
    active: 'k2',
    keys: new Map([
      ['k1', FIRST],
      ['k2', SECOND],
    ]),
  }));
  const stranger = new SignInAttempts(() => ({ active: 'k1', keys: new Map([['k1', SECOND]]) }));
  const sealed = before.seal(ATTEMPT, 0);
  assert.equal(Buffer.from(sealed, 'base64url').includes(ATTEMPT.verifier), false);
  assert.deepEqual(after.open(sealed, ATTEMPT_S * 1000 - 1), ATTEMPT);
  assert.equal(after.open(sealed, ATTEMPT_S * 1000), undefined);
  assert.equal(stranger.open(sealed, 0), undefined);
  assert.equal(before.open(after.seal(ATTEMPT, 0), 0), undefined, 'a removed key opens nothing');
  for (const text of ['', '.', 'k1.', 'k1.AAAA', `${sealed}.`])
    assert.equal(before.open(text, 0), undefined, text);
});
