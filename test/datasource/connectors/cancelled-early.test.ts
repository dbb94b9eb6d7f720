/** Statements that are cancelled before the data warehouse has answered that it has taken them. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { TEST_CERTIFICATE } from '#test/support/stand-ins/test-certificate.ts';
import { httpStandIn } from '../http-stand-in.ts';
import { ask, probeFixture } from '../probe-fixture.ts';

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const private_key = privateKey.export({ type: 'pkcs8', format: 'pem' });

const account = { catalog: 'c', schema: 's', user: 'u', ca_certificate: TEST_CERTIFICATE };
const CONNECTIONS: Readonly<Record<string, (url: string, port: number) => object>> = {
  snowflake: (url) => {
    const { catalog: _, ...rest } = account;
    return { url, account: 'a', token: 't', warehouse: 'w', database: 'd', ...rest };
  },
  databricks: (_, port) => {
    const { user: _user, ...rest } = account;
    return { host: 'localhost', port, http_path: '/sql/1.0/warehouses/a', token: 't', ...rest };
  },
  trino: (url) => ({ url, ...account }),
  bigquery: (url) => ({
    url,
    project: 'p',
    dataset: 'd',
    service_account: { client_email: 'a@b.c', private_key, token_uri: `${url}/token` },
    ca_certificate: TEST_CERTIFICATE,
  }),
};

for (const [kind, connectionTo] of Object.entries(CONNECTIONS)) {
  test(`a statement that ${kind} accepts only after its cancellation is cancelled there as well`, async (t) => {
    const stop = new AbortController();
    const { port, requests } = await httpStandIn(t, ({ method, path }, own) => {
      if (path === '/token') return { body: { access_token: 't', expires_in: 3600 } };
      if (method === 'DELETE' || path.includes('/cancel')) return { body: {} };
      const taken = {
        statementHandle: 'h',
        statement_id: 'h',
        status: { state: 'RUNNING' },
        nextUri: `https://localhost:${own}/v1/statement/h`,
        jobReference: { jobId: 'h' },
      };
      const afterCancel = async function* () {
        if (!stop.signal.aborted) await once(stop.signal, 'abort');
        yield JSON.stringify(taken);
      };
      return { status: kind === 'snowflake' ? 202 : 200, body: Readable.from(afterCancel()) };
    });
    const connection = { kind, ...connectionTo(`https://localhost:${port}`, port) };
    const session = await probeFixture(t).open(connection);
    const asked = ask(session, 'SELECT 1', { signal: stop.signal, readOnly: false });
    while (!requests.some(({ path }) => path !== '/token')) await new Promise(setImmediate);
    stop.abort();
    await assert.rejects(asked, { category: 'cancelled' });
    const { method, path } = requests.at(-1) ?? {};
    assert.match(`${method} ${path}`, /^(POST .*\/h\/cancel|DELETE .*\/h)/);
  });
}
