import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { NewAccessToken } from '#src/contract/wire/identity.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { callCode } from '#test/support/code-call.ts';
import { filesBelow } from '#test/support/living-files.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { sendRaw } from '#test/support/raw-request.ts';
import { refusalOf, tally } from '#test/support/refusal.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const TOKEN: NewAccessToken = { name: 'canary', scopes: ['workspaceRuntime:connect'] };

/** Requests that make something, on a session that is ready: each answers 2xx. */
function requestsOn(
  notebookId: string,
  otherNotebookId: string,
  environmentId: string,
  runId: string,
): { path: string; body: object; headers?: Record<string, string> }[] {
  return [
    { path: '/api/v3/notebooks', body: { variables: { A: 'b' } } },
    {
      path: '/api/v3/notebooks/import',
      body: { format: 'py', content: 'import marimo\napp = marimo.App()\n' },
    },
    { path: '/api/v3/execution-environments', body: {} },
    { path: '/api/v3/notebook-sessions', body: { notebookId: otherNotebookId, environmentId } },
    { path: '/api/v3/workspaces', body: { name: 'w' } },
    { path: '/api/v3/members', body: { userId: 'ada', role: 'viewer' } },
    { path: '/api/v3/access-tokens', body: TOKEN },
    { path: `/api/v3/runs/${runId}/cancel`, body: {} },
    {
      path: '/api/cee/kernel/execute',
      headers: { 'service-session-id': notebookId },
      body: { code: 'open("calls", "a").write("+")' },
    },
    {
      path: `/api/v3/notebook-sessions/${notebookId}/executions`,
      body: { type: 'cells', cells: [{ cellId: 'quick' }] },
    },
  ];
}

test('every POST that is repeated with its key runs once and returns the same response, even after kill -9', async (t) => {
  const server = await startChildServer(t);
  const { client, dataDir } = server;
  const CELLS = {
    slow: 'import time\ntime.sleep(1000)',
    quick: 'open("runs", "a").write("+")',
  };
  const [notebook, held, other, { environmentId }] = await Promise.all([
    openNotebook(server, CELLS),
    openNotebook(server, CELLS),
    client.notebooks.create(),
    client.executionEnvironments.create(),
  ]);
  const runId = await held.submit(['slow']);
  const requests = requestsOn(notebook.id, other.id, environmentId, runId);
  const post = (baseUrl: string, { path, body, headers = {} }: (typeof requests)[number], key: string) =>
    sendRaw(baseUrl, 'POST', path, OWNER, { body, headers: { ...headers, 'idempotency-key': key } });

  const answers = [];
  for (const [i, request] of requests.entries()) {
    const first = await post(server.baseUrl, request, `key-${i}`);
    assert.ok(first.status >= 200 && first.status < 300, `${request.path}: ${first.status} ${first.text}`);
    assert.equal(first.headers['idempotency-replayed'], undefined);
    const second = await post(server.baseUrl, request, `key-${i}`);
    const shown = ({ status, text, contentType, headers }: typeof first) => [
      status,
      text,
      contentType,
      headers.location,
    ];
    assert.deepEqual(shown(second), shown(first), request.path);
    assert.equal(second.headers['idempotency-replayed'], 'true');
    const third = await post(server.baseUrl, { ...request, body: { ...request.body, extra: 1 } }, `key-${i}`);
    assert.ok(third.status === 409 || third.status === 400, `${request.path}: ${third.status}`);
    answers.push(shown(first));
  }
  await server.end('SIGKILL');
  const after = await server.again();
  for (const [i, request] of requests.entries()) {
    const { status, text, contentType, headers } = await post(after.baseUrl, request, `key-${i}`);
    assert.deepEqual([status, text, contentType, headers.location], answers[i], request.path);
    assert.equal(headers['idempotency-replayed'], 'true');
  }
  const files = join(dataDir, 'workspaces', OWNER.workspaceId, 'files');
  assert.equal(readFileSync(join(files, 'calls'), 'utf8'), '+');
  assert.equal((await after.client.executions.list(notebook.id)).items.length, 1);

  const token = JSON.parse(String(answers[requests.findIndex(({ path }) => path.endsWith('tokens'))]?.[1]));
  assert.equal(typeof token.token, 'string');
  const stranger = after.client.accessTokens.create(TOKEN, { idempotencyKey: 'another' });
  const { token: secret } = await stranger;
  await after.end('SIGTERM');
  for (const [file, bytes] of filesBelow(dataDir)) {
    for (const canary of [token.token, secret]) assert.equal(bytes.includes(canary), false, file);
  }
});

test('every POST route reads the idempotency key before the rest of the request', async (t) => {
  const server = await startServer(t);
  const { paths } = (await server.client.openapi()) as { paths: Record<string, Record<string, unknown>> };
  const posts = Object.entries(paths).flatMap(([path, operations]) => ('post' in operations ? [path] : []));
  assert.ok(posts.length >= 9);
  // A sender of a hook chooses any id, which is a part of the request to its own hook alone.
  for (const path of posts.filter((one) => !one.includes('/hooks-in/{hookInId}'))) {
    const { status, body } = await server.request('POST', path.replace(/\{\w+\}/g, 'x'), {
      headers: { 'idempotency-key': 'not usable' },
      body: {},
    });
    const { code, errors } = body as { code: string; errors: readonly { path: string }[] };
    assert.deepEqual(
      [status, code, errors.map((e) => e.path)],
      [400, 'invalid_request', ['header/idempotency-key']],
      path,
    );
  }
});

test('one of twenty simultaneous requests with one key runs, and the other requests wait for its response', async (t) => {
  const server = await startServer(t);
  const { client } = server;
  const notebook = await openNotebook(server, { a: '1' });
  const code =
    'import os, time\nwhile not os.path.exists("go"): time.sleep(0.01)\nopen("once", "a").write("+")';
  let refused = 0;
  const calls = Array.from({ length: 20 }, () =>
    callCode(client, notebook.id, code, { idempotencyKey: 'one' }).catch((error: unknown) => {
      refused++;
      throw error;
    }),
  );
  const counted = tally(calls);
  await eventually('the others are refused while one runs', () => refused === 19);
  writeFileSync(join(server.filesDir, 'go'), '');
  assert.deepEqual(await counted, { ok: 1, '409 idempotency_in_progress': 19 });
  assert.equal((await callCode(client, notebook.id, code, { idempotencyKey: 'one' })).success, true);
  assert.equal(readFileSync(join(server.filesDir, 'once'), 'utf8'), '+');
});

test('a key belongs to one session: the same key with another session is a different request', async (t) => {
  const server = await startServer(t);
  const [one, two] = await Promise.all([openNotebook(server, { a: '1' }), openNotebook(server, { a: '1' })]);
  await callCode(server.client, one.id, '1', { idempotencyKey: 'k' });
  assert.equal(
    await refusalOf(callCode(server.client, two.id, '1', { idempotencyKey: 'k' })),
    '409 idempotency_key_reused',
  );
});

test('a refused request can be sent again with its key', async (t) => {
  const server = await startServer(t);
  const { client } = server;
  const notebook = await openNotebook(server, { a: 'import time\ntime.sleep(1000)', b: '1' });
  const runId = await notebook.submit(['a']);
  const again = () =>
    client.executions.submit(
      notebook.id,
      { type: 'cells', cells: [{ cellId: 'b' }] },
      { idempotencyKey: 'later' },
    );
  assert.equal(await refusalOf(again()), '409 session_busy');
  await client.runs.cancel(runId);
  await client.waitForRun(runId);
  const accepted = await again();
  assert.deepEqual(await again(), accepted);
  assert.equal((await client.waitForRun(accepted.runId)).status, 'completed');
});
