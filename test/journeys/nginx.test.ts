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
/** uWebSockets.js answers HTTP/1.0, which nginx speaks to servers unless told otherwise, with 505. */
const LOCATION = `proxy_http_version 1.1; proxy_read_timeout ${READ_TIMEOUT_S}s;`;

const nginx = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  .map((folder) => join(folder, 'nginx'))
  .find(existsSync);
const skip =
  nginx === undefined && process.env.CI !== 'true' ? 'nginx is not installed: apt-get install nginx' : false;

/** The configuration of the distribution, with our site in the place of its sites. */
function configuration(folder: string, port: number, target: string): string {
  const site = `server { listen 127.0.0.1:${port}; location / { ${LOCATION} proxy_pass ${target}; } }`;
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

/** nginx in front of a server, on a free port; answers its address once it answers. */
async function startNginx(owner: Owner, target: string): Promise<string> {
  assert.ok(nginx, 'CI needs nginx');
  const folder = mkdtempSync(join(tmpdir(), 'troupe-nginx-'));
  const port = await freePort();
  writeFileSync(join(folder, 'nginx.conf'), configuration(folder, port, target));
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

test('behind nginx, events come as they happen and a silent run is not cut off', { skip }, async (t) => {
  const server = await startServer(t, { TROUPE_HEARTBEAT_S: '0.3' });
  const baseUrl = await startNginx(t, server.baseUrl);
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

test('behind nginx, an answer is byte for byte what the server answers', { skip }, async (t) => {
  const server = await startServer(t);
  const baseUrl = await startNginx(t, server.baseUrl);
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

/** The body without what differs from request to request. */
async function stable(response: Response): Promise<string> {
  return (await response.text()).replace(/"requestId":"[^"]+"/, '');
}
