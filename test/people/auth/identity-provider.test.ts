/** Malformed, hostile and missing answers of an identity provider. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { IdentityProvider, type ProviderSettings } from '#src/people/auth/provider/identity-provider.ts';

const SETTINGS: Omit<ProviderSettings, 'oidcIssuer'> = {
  oidcClientId: 'troupe',
  oidcClientSecretFile: undefined,
  oidcScopes: 'openid',
  oidcParameters: '',
  oidcUserClaim: 'email',
  oidcGroupsClaim: 'groups',
  oidcRoles: [],
  oidcName: 'Company',
  oidcCheckS: 60,
};

/** Begins to sign in with a provider whose description has this many blanks at its end. Resolves with the address of the sign-in. */
async function begin(t: TestContext, blanks: number, isCompressed: boolean): Promise<string> {
  const server = http.createServer((_, response) => {
    const described = JSON.stringify({
      issuer,
      authorization_endpoint: `${issuer}/auth`,
      jwks_uri: `${issuer}/keys`,
    });
    const body = Buffer.from(described + ' '.repeat(blanks));
    const encoding = isCompressed ? { 'content-encoding': 'gzip' } : {};
    response.writeHead(200, { 'content-type': 'application/json', ...encoding });
    response.end(isCompressed ? gzipSync(body) : body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = IdentityProvider.of({ ...SETTINGS, oidcIssuer: issuer });
  assert.ok(provider);
  const { url } = await provider.begin('http://localhost/sign-in/callback');
  return url;
}

for (const isCompressed of [false, true])
  test(`an answer of the provider is read up to 1 MiB${isCompressed ? ' of what it decompresses to' : ''}`, async (t) => {
    assert.match(await begin(t, 1_000_000, isCompressed), /\/auth\?/);
    await assert.rejects(begin(t, 2_000_000, isCompressed), { name: 'ProviderFailure' });
  });
