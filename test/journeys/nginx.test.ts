import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import test from 'node:test';
import { createClient } from '#src/client/client.ts';
import { callCode } from '#test/support/code-call.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, type Owner, startServer } from '#test/support/server-fixture.ts';

const DEBIAN = '/etc/nginx/nginx.conf';
const READ_TIMEOUT_S = 1;
/** Debian's nginx speaks HTTP/1.0 to the servers behind it unless it is told otherwise. */
const WAYS = [
  { name: 'nginx that is told to speak HTTP/1.1', location: 'proxy_http_version 1.1;', http10: false },
  { name: 'nginx with its defaults', location: '', http10: true },
] as const;
type Way = (typeof WAYS)[number];

const nginx = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  .map((folder) => join(folder, 'nginx'))
  .find(existsSync);
const skip =
  nginx === undefined && process.env.CI !== 'true' ? 'nginx is not installed: apt-get install nginx' : false;

/** The configuration of the distribution, with our site in the place of its sites. */
function configuration(folder: string, port: number, location: string): string {
  const site = `server { listen 127.0.0.1:${port}; location / { ${location} } }`;
  const http = existsSync(DEBIAN)
    ? (/\nhttp \{([\s\S]*)\n\}/.exec(readFileSync(DEBIAN, 'utf8'))?.[1] ?? '')
    : 'gzip on;';
  const own = http
    .replace(/^\s*(include \/etc\/nginx\/(conf\.d|sites-enabled)|access_log|error_log).*$/gm, '')
    .trimEnd();
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
    .join(' ');
  return [
    'daemon off; worker_processes 1;',
    `pid ${folder}/pid; error_log ${folder}/error.log;`,
    'events { worker_connections 64; }',
    `http {${own}\naccess_log off; ${paths}\n${site} }`,
  ].join('\n');
}

/** A server with nginx in front of it, on a free port; answers both once nginx answers. */
async function startBehindNginx(owner: Owner, way: Way, settings: Readonly<Record<string, string>> = {}) {
  const http10Port = String(await freePort());
  const server = await startServer(owner, {
    ...settings,
    ...(way.http10 ? { TROUPE_HTTP10_PORT: http10Port } : {}),
  });
  const target = way.http10 ? `http://127.0.0.1:${http10Port}` : server.baseUrl;
  const silence = `proxy_read_timeout ${READ_TIMEOUT_S}s;`;
  return {
    server,
    baseUrl: await startNginx(owner, `${way.location} ${silence} proxy_pass ${target};`),
  };
}

async function startNginx(owner: Owner, location: string): Promise<string> {
  assert.ok(nginx, 'CI needs nginx');
  const folder = mkdtempSync(join(tmpdir(), 'troupe-nginx-'));
  const port = await freePort();
  writeFileSync(join(folder, 'nginx.conf'), configuration(folder, port, location));
  const child = spawn(
    nginx,
    ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')],
    {
      stdio: 'ignore',
    },
  );
  const ended = once(child, 'exit');
  owner.after(async () => {
    child.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });
  const baseUrl = `http://127.0.0.1:${port}`;
  await eventually('nginx answers', () => {
    assert.equal(
      child.exitCode,
      null,
      existsSync(join(folder, 'error.log')) ? readFileSync(join(folder, 'error.log'), 'utf8') : '',
    );
    return fetch(`${baseUrl}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  });
  return baseUrl;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  assert.ok(typeof address === 'object' && address !== null);
  return address.port;
}

for (const way of WAYS) {
  test(`behind ${way.name}, events arrive as they happen and a silent run is not cut off`, {
    skip,
  }, async (t) => {
    const { baseUrl } = await startBehindNginx(t, way, { TROUPE_HEARTBEAT_S: '0.3' });
    const { token: accessToken, workspaceId } = OWNER;
    const client = createClient({ baseUrl, accessToken, workspaceId });
    const notebook = await openNotebook(
      { client },
      {
        a: `import time\nfor n in range(3):\n  print(n, flush=True)\n  time.sleep(0.3)\ntime.sleep(${READ_TIMEOUT_S * 2.5})`,
      },
    );
    await using events = await EventLog.open(client, notebook.id);
    const runId = await notebook.submit(['a']);
    for (const n of ['0', '1', '2']) {
      await events.until(({ type, data }) => type === 'console-output' && data.text.includes(n));
      assert.equal((await client.runs.get(runId)).status, 'running', `${n} came while it ran`);
    }
    await events.until(({ type, data }) => type === 'run-status' && data.status === 'completed');
    assert.equal(events.dataOf('session.snapshot').length, 1, 'it was one connection');
    const long = `import time\ntime.sleep(${READ_TIMEOUT_S * 2.5})\nprint("done")`;
    assert.equal((await callCode(client, notebook.id, long)).stdout, 'done\n', 'nor is code');
    assert.equal((await notebook.close()).status, 'closed');
    await events.ended;
    assert.equal(events.types.at(-1), 'session.closed');
  });

  test(`behind ${way.name}, a response is byte for byte that of the server`, { skip }, async (t) => {
    const { server, baseUrl } = await startBehindNginx(t, way);
    const { client } = server;
    const { id } = await client.notebooks.create({
      serialization: { cells: [{ cell_id: 'a', code: 'é'.repeat(100_000) }] },
    });
    const headers = { authorization: `Bearer ${OWNER.token}`, 'service-workspace-id': OWNER.workspaceId };
    for (const path of [`/api/v3/notebooks/${id}`, '/api/v3/notebooks', '/api/v3/nothing', '/healthz']) {
      const [near, far] = await Promise.all(
        [server.baseUrl, baseUrl].map((url) => fetch(url + path, { headers })),
      );
      assert.deepEqual([far!.status, await stable(far!)], [near!.status, await stable(near!)], path);
    }
  });
}

/** The lines of docs/operating.md for a `location` of nginx. */
function documentedLocation(port: string): string {
  const page = readFileSync('docs/operating.md', 'utf8');
  const [, lines] = /```nginx\s+location \/ \{([\s\S]*?)\}\s+```/.exec(page) ?? [];
  assert.ok(lines?.includes('127.0.0.1:8787') === true, 'docs/operating.md shows how');
  return lines.replace('127.0.0.1:8787', `127.0.0.1:${port}`);
}

test('behind nginx as docs/operating.md sets it up, a page of the address in front may change datasources', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const baseUrl = await startNginx(t, documentedLocation(new URL(server.baseUrl).port));
  const create = (slug: string, origin: string) =>
    fetch(`${baseUrl}/api/v3/datasources`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${OWNER.token}`,
        'service-workspace-id': OWNER.workspaceId,
        'content-type': 'application/json',
        origin,
      },
      body: JSON.stringify({ slug, connection: { kind: 'sqlite', path: 'a.db' } }),
    });
  assert.equal((await create('near', baseUrl)).status, 201);
  assert.equal((await create('far', 'https://elsewhere.example')).status, 403);
  const { client } = server;
  const { id } = await client.notebooks.create();
  const headers = { authorization: `Bearer ${OWNER.token}`, 'service-workspace-id': OWNER.workspaceId };
  const page = await fetch(`${baseUrl}/api/v3/notebooks/${id}/export?format=html`, { headers });
  assert.ok((await page.text()).includes(baseUrl), 'links begin with the address in front');
});

/** The body without what differs from request to request. */
async function stable(response: Response): Promise<string> {
  return (await response.text()).replace(/"requestId":"[^"]+"/, '');
}
