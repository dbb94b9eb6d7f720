/**
 * A server without a free file descriptor refuses requests that need one with an error that names
 * the cause, answers the other requests, and recovers.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { UNSEEN } from '#test/support/processes.ts';
import { OWNER } from '#test/support/server-fixture.ts';

const HEADERS = { authorization: `Bearer ${OWNER.token}` };
const WORKSPACE = { ...HEADERS, 'service-workspace-id': OWNER.workspaceId };

test('with too many open files no request gets a 500, and the server recovers once files are closed', {
  skip: UNSEEN,
}, async (t) => {
  const server = await startChildServer(t, { TROUPE_WORKERS: '1' });
  const { id } = await openNotebook(server, { a: '1' });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 }); // reuses its connection, because a new one would need a descriptor
  t.after(() => agent.destroy());
  const ask = (method: string, path: string, headers: Readonly<Record<string, string>>) =>
    new Promise<{ status: number; code: string | undefined }>((resolve, reject) => {
      const body = method === 'GET' ? undefined : '{}';
      const sent = request(
        `${server.baseUrl}${path}`,
        { method, agent, headers: { ...headers, ...(body && { 'content-type': 'application/json' }) } },
        (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (part) => (text += part));
          response.on('end', () => {
            const isProblem = response.headers['content-type'] === 'application/problem+json';
            resolve({
              status: response.statusCode ?? 0,
              code: isProblem ? JSON.parse(text).code : undefined,
            });
          });
        },
      );
      sent.on('error', reject).end(body);
    });
  const asked = [
    ['GET', '/metrics', HEADERS],
    ['GET', '/api/v3/server', HEADERS],
    ['GET', '/api/v3/server/log', HEADERS],
    ['GET', '/readyz', {}],
    ['GET', '/api/v3/kernels', WORKSPACE],
    ['GET', '/api/v3/usage', WORKSPACE],
    ['GET', '/api/v3/files', WORKSPACE],
    ['GET', '/api/v3/files/content?path=nothing', WORKSPACE],
    ['GET', '/api/v3/notebooks', WORKSPACE],
    ['POST', '/api/v3/notebooks', WORKSPACE],
    ['GET', `/api/v3/notebooks/${id}/file`, WORKSPACE],
    ['GET', '/api/v3/packages', WORKSPACE],
    ['GET', '/api/v3/environments', WORKSPACE],
    ['GET', '/api/v3/runs', WORKSPACE],
    ['GET', '/api/v3/audit', WORKSPACE],
    ['GET', '/console/', {}],
  ] as const;
  await ask('GET', '/readyz', {});
  const limit = Number(
    /^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${server.pid}/limits`, 'utf8'))?.[1],
  );
  limitFiles(server.pid, readdirSync(`/proc/${server.pid}/fd`).length);
  const answers = new Map<string, { status: number; code: string | undefined }>();
  for (const [method, path, headers] of asked) answers.set(path, await ask(method, path, headers));
  for (const [path, { status, code }] of answers) {
    assert.notEqual(status, 500, path);
    if (status === 503) assert.equal(code, 'unavailable', path);
  }
  for (const path of ['/metrics', '/api/v3/server', '/api/v3/notebooks', '/readyz'])
    assert.ok((answers.get(path)?.status ?? 0) < 300, path);
  limitFiles(server.pid, limit);
  for (const [method, path, headers] of asked) {
    const { status, code } = await ask(method, path, headers);
    assert.ok(status < 500 && code !== 'unavailable', path);
  }
});

function limitFiles(pid: number, count: number): void {
  const { status, stderr } = spawnSync('prlimit', ['--pid', String(pid), `--nofile=${count}:`], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
}
