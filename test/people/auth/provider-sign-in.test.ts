import assert from 'node:assert/strict';
import test from 'node:test';
import type { BrowserSignIns } from '#src/people/auth/browser-sign-ins.ts';
import type { IdentityProvider } from '#src/people/auth/provider/identity-provider.ts';
import type { ProviderContext } from '#src/people/auth/provider/provider-context.ts';
import { ProviderSignIn } from '#src/people/auth/provider/provider-sign-in.ts';
import { testContext } from '#test/support/test-context.ts';

const CALLBACK = new URL('http://localhost/sign-in/callback');
const ATTEMPT = { state: 's', nonce: 'n', verifier: 'v' };

test('answers from one address leave places at the identity provider for answers from others', async () => {
  const asked: string[] = [];
  const waiting: Promise<unknown>[] = [];
  const provider: Partial<IdentityProvider> = {
    complete: ({ hash }) => {
      asked.push(hash);
      return new Promise(() => undefined); // the provider is slow
    },
  };
  const parts = testContext<ProviderContext>({ provider, identity: {}, accounts: {} });
  const signIn = new ProviderSignIn(parts, {} as BrowserSignIns, () => ({ active: 'k1', keys: new Map() }));
  const answer = (client: string) =>
    signIn.complete(new URL(`#${client}`, CALLBACK), ATTEMPT, client, () => undefined);
  let refused = 0;
  for (let count = 0; count < 100; count++)
    waiting.push(
      answer('stranger').catch(
        (error: { code: string }) => (refused += Number(error.code === 'unavailable')),
      ),
    );
  waiting.push(answer('other'));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(waiting.length, 101);
  assert.deepEqual(asked, [...Array(4).fill('#stranger'), '#other']);
  assert.equal(refused, 100 - 4 - 32);
});
