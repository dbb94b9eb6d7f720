import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { startServer } from '#test/support/server-fixture.ts';

test('the landing page describes the server, the first steps and the operations', async (t) => {
  const server = await startServer(t);
  const { status, contentType, text } = await server.request('GET', '/about', {
    headers: { accept: 'text/html' },
  });
  assert.equal(status, 200);
  assert.match(contentType, /^text\/html/);
  assert.match(text, /troupe run analysis\.py/);
  assert.match(text, /href="\/api\/v3\/openapi\.json"/);
  const document = (await server.client.openapi()) as { paths: Record<string, object> };
  for (const path of Object.keys(document.paths)) {
    if (path !== '/' && path !== '/api/v3/openapi.json') assert.ok(text.includes(path), `${path} is missing`);
  }
});

test('the landing page loads and runs nothing, and has only its own style', async (t) => {
  const server = await startServer(t);
  const { headers, text } = await server.request('GET', '/');
  const style = /<style>(.*)<\/style>/s.exec(text)?.[1] ?? '';
  const hash = createHash('sha256').update(style).digest('base64');
  const policy = String(headers['content-security-policy']);
  assert.match(policy, /default-src 'none'/);
  assert.ok(policy.includes(`style-src 'sha256-${hash}'`));
  assert.doesNotMatch(text, /<script|https?:\/\/(?!\w*\$)/);
});

test('the landing page needs no token', async (t) => {
  const server = await startServer(t);
  assert.equal((await fetch(`${server.baseUrl}/`)).status, 200);
});
