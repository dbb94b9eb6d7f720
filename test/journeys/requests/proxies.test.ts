/** The files of `deploy/` for proxies: each is started as it is, with TLS, in front of a real server. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici';
import { createClient } from '#src/contract/client/client.ts';
import { MAX_WAIT_S } from '#src/contract/wire/run.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { callCode } from '#test/support/code-call.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import {
  behindProxies,
  freePort,
  lacksProxy,
  PROXIES,
  type ProxyName,
  startTlsProxy,
} from '#test/support/stand-ins/reverse-proxies.ts';
import { TEST_CERTIFICATE } from '#test/support/stand-ins/test-certificate.ts';

const NAMES = Object.keys(PROXIES) as ProxyName[];
/** An address of the loopback that differs from the proxy's. */
const CLIENT_ADDRESS = '127.0.0.2';
/** More bytes than nginx takes of a body anywhere else. */
const UPLOAD_BYTES = 17 << 20;
const HEADERS = { authorization: `Bearer ${OWNER.token}`, 'service-workspace-id': OWNER.workspaceId };

const behind = behindProxies(test);
const server = await startServer(test, {
  ...behind.settings,
  TROUPE_TRUSTED_PROXIES: '127.0.0.0/8', // not trusted, because notebook code connects from there as well
  TROUPE_HEARTBEAT_S: '0.3',
  TROUPE_LOG_LEVEL: 'debug',
});
const agent = new Agent({ localAddress: CLIENT_ADDRESS, connect: { ca: TEST_CERTIFICATE } });
const usual = getGlobalDispatcher();
setGlobalDispatcher(agent); // the agent that `fetch` uses
test.after(async () => {
  setGlobalDispatcher(usual);
  await agent.destroy();
});

for (const name of NAMES) {
  test(`the file for ${name} serves requests, events as they happen, and uploads over TLS`, {
    skip: lacksProxy(name),
  }, async (t) => {
    const { baseUrl, plainUrl } = await startTlsProxy(t, name, behind.socketPath);
    const { token: accessToken, workspaceId } = OWNER;
    const client = createClient({ baseUrl, accessToken, workspaceId });

    await t.test('events of a session pass a proxy as they happen', async () => {
      const code =
        'import time\nfor n in range(3):\n  print(n, flush=True)\n  time.sleep(0.3)\nlong = [1]\ntime.sleep(1)';
      const notebook = await openNotebook({ client }, { a: code });
      await using events = await EventLog.open(client, notebook.id);
      const runId = await notebook.submit(['a']);
      for (const n of ['0', '1', '2']) {
        await events.until(({ type, data }) => type === 'console-output' && data.text.includes(n));
        assert.equal((await client.runs.get(runId)).status, 'running', `${n} came while it ran`);
      }
      await events.until(({ type, data }) => type === 'run-status' && data.status === 'completed');
      assert.equal((await callCode(client, notebook.id, 'print(long)')).stdout, '[1]\n');
      await notebook.close();
      await events.ended;
      assert.equal(events.types.at(-1), 'session.closed');
    });

    await t.test('a file that is uploaded through a proxy is downloaded unchanged', async () => {
      const bytes = randomBytes(UPLOAD_BYTES);
      const path = `${name}/large.bin`;
      assert.equal((await client.files.put(path, bytes)).bytes, UPLOAD_BYTES);
      assert.ok(bytes.equals((await client.files.get(path)).bytes));
      await client.files.delete(path);
    });

    await t.test('a large file that is uploaded in the Files panel of a notebook arrives whole', async () => {
      const notebook = await openNotebook({ client }, { a: '1' });
      const page = await NotebookPageClient.open(client, baseUrl, notebook.id);
      const bytes = randomBytes(UPLOAD_BYTES);
      const form = new FormData();
      for (const [field, value] of Object.entries({ path: '/', type: 'file', name: `from-${name}.bin` }))
        form.append(field, value);
      form.append('file', new Blob([bytes]), `from-${name}.bin`);
      const answer = await fetch(`${page.address}api/files/create`, {
        method: 'POST',
        headers: { authorization: `Bearer ${page.token}` },
        body: form,
      });
      assert.equal(answer.status, 200, await answer.text());
      assert.ok(bytes.equals((await client.files.get(`from-${name}.bin`)).bytes));
      await client.files.delete(`from-${name}.bin`);
      await notebook.close();
    });

    await t.test('a header with an underscore in its name does no harm', async () => {
      const response = await fetch(`${baseUrl}/api/v3/me`, { headers: { ...HEADERS, x_odd: '1' } });
      await response.text();
      assert.equal(response.status, 200);
    });

    await t.test('the proxy redirects http to https', async () => {
      const answer = await fetch(`${plainUrl}/api/v3/me?a=b`, { redirect: 'manual' });
      assert.ok([301, 308].includes(answer.status));
      assert.match(answer.headers.get('location') ?? '', /^https:\/\/127\.0\.0\.1(:\d+)?\/api\/v3\/me\?a=b$/);
    });

    await t.test(
      "the log has the client's address as reported by the proxy, and not by the client",
      async () => {
        assert.equal(await loggedAddress(baseUrl, agent), CLIENT_ADDRESS);
      },
    );

    if (name !== 'caddy')
      await t.test('the configuration file of the proxy has a listener for IPv6', async () => {
        const plain = new Agent({ connect: { ca: TEST_CERTIFICATE, servername: 'localhost' } });
        const url = baseUrl.replace('127.0.0.1', '[::1]');
        assert.equal(await loggedAddress(url, plain).finally(() => plain.close()), '::1');
      });

    await t.test('a page of the public address may change datasources, and no other page may', async () => {
      const create = async (slug: string, origin: string) => {
        const answer = await fetch(`${baseUrl}/api/v3/datasources`, {
          method: 'POST',
          headers: { ...HEADERS, 'content-type': 'application/json', origin },
          body: JSON.stringify({ slug, connection: { kind: 'sqlite', path: 'a.db' } }),
        });
        await answer.text();
        return answer.status;
      };
      assert.equal(await create(`near-${name}`, baseUrl), 201);
      assert.equal(await create(`far-${name}`, 'https://elsewhere.example'), 403);
      const { id } = await client.notebooks.create();
      const page = await fetch(`${baseUrl}/api/v3/notebooks/${id}/export?format=html`, {
        headers: HEADERS,
      });
      assert.ok((await page.text()).includes(baseUrl), 'links begin with the address in front');
    });
  });
}

/** Resolves with the address of a client that invents another one, as the server logs it. */
async function loggedAddress(url: string, dispatcher: Agent): Promise<unknown> {
  const { headers, body } = await dispatcher.request({
    origin: url,
    path: '/api/v3/me',
    method: 'GET',
    headers: { ...HEADERS, 'x-forwarded-for': '203.0.113.9' },
  });
  await body.text();
  const id = headers['x-request-id'];
  const line = await eventually('it is logged', () =>
    server.log.find(({ request }) => Object(request).requestId === id),
  );
  return line.address;
}

test('HAProxy sends no request to a draining server, although the server still answers', {
  skip: lacksProxy('haproxy'),
}, async (t) => {
  const { settings, socketPath } = behindProxies(t);
  const draining = await startChildServer(t, { ...settings, TROUPE_DRAIN_S: '60' });
  const { baseUrl } = await startTlsProxy(t, 'haproxy', socketPath);
  const asked = async (url: string) => {
    const answer = await fetch(`${url}/api/v3/me`, { headers: HEADERS });
    await answer.text();
    return answer.status;
  };
  await eventually('HAProxy has found the server', async () => (await asked(baseUrl)) === 200);
  process.kill(draining.pid, 'SIGTERM');
  await eventually('HAProxy has noticed', async () => (await asked(baseUrl)) === 503);
  assert.equal(await asked(draining.baseUrl), 200);
});

test('through Caddy, a request that arrives during a restart of the server waits for the server', {
  skip: lacksProxy('caddy'),
}, async (t) => {
  const { settings, socketPath } = behindProxies(t);
  const before = await startChildServer(t, { ...settings, TROUPE_PORT: String(await freePort()) });
  const { baseUrl } = await startTlsProxy(t, 'caddy', socketPath);
  await before.end('SIGTERM');
  const answer = fetch(`${baseUrl}/api/v3/me`, { headers: HEADERS });
  await before.again();
  assert.equal((await answer).status, 200);
});

test('every proxy waits longer than the longest wait for a run', () => {
  for (const name of NAMES) {
    const text = readFileSync(join('deploy', PROXIES[name].file), 'utf8');
    const waits = [
      ...text.matchAll(/^\s*(?:proxy_(?:read|send)_timeout|timeout (?:client|server)) (\d+)s;?$/gm),
    ];
    assert.deepEqual(
      waits.map(([, seconds]) => Number(seconds) > MAX_WAIT_S),
      name === 'caddy' ? [] : [true, true], // Caddy waits without a limit
    );
  }
});
