/** The Python client on connections that break, with servers that refuse, and with servers that are newer than it. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import test from 'node:test';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { startCuttingProxy } from '#test/support/stand-ins/cutting-proxy.ts';
import { PACKAGE, PROGRAMS, PYTHON, run } from './python.ts';
import { sendJson, startScriptedServer } from './scripted-server.ts';

const CUT_EVERY_MS = 200;
const TIME = '2026-01-31T12:00:00.000Z';

/** Runs a program with a client of the server at `baseUrl`, and resolves with its output. */
async function outcomeOf(program: string, baseUrl: string): Promise<unknown> {
  const env = {
    PYTHONPATH: PACKAGE,
    SERVICE_BASE_URL: baseUrl,
    SERVICE_ACCESS_TOKEN: OWNER.token,
    SERVICE_WORKSPACE_ID: OWNER.workspaceId,
  };
  return JSON.parse(await run(PYTHON, [join(PROGRAMS, program)], { cwd: PACKAGE, env }));
}

test('over connections that break every 200 ms, 50 runs run once each, and every event and every end arrives once', async (t) => {
  const server = await startServer(t);
  const proxy = await startCuttingProxy(t, server.baseUrl);
  const cutting = setInterval(() => proxy.cut(), CUT_EVERY_MS);
  t.after(() => clearInterval(cutting));
  const { runs, followed, listed } = (await outcomeOf('fifty_runs.py', proxy.baseUrl)) as {
    readonly runs: readonly { id: string; ids: string[]; printed: string; end: string; result: string }[];
    readonly followed: readonly (readonly [string, string])[];
    readonly listed: readonly string[];
  };
  assert.equal(runs.length, 50);
  for (const { ids, printed, end, result } of runs) {
    assert.deepEqual(
      { printed, end, result },
      { printed: 'begin\nend\n', end: 'completed', result: 'completed' },
    );
    assert.equal(new Set(ids).size, ids.length);
  }
  assert.deepEqual(
    listed,
    runs.map(({ id }) => id),
  );
  assert.deepEqual(
    followed,
    runs.flatMap(({ id }) => [
      [id, 'running'],
      [id, 'completed'],
    ]),
  );
  assert.ok(proxy.connections > 100, 'the connections were cut');
});

test('requests are repeated with the same Idempotency-Key and after Retry-After, but calls of code and functions are not', async (t) => {
  const notebook = (id: string) => ({
    ...{
      id,
      url: `/n/${id}/`,
      title: null,
      createdAt: TIME,
      updatedAt: TIME,
      datasourceSlugs: [],
      variables: {},
    },
    serialization: { version: '1', app: { options: {} }, cells: [], valid: true, ui_values: {} },
  });
  const problem = (response: ServerResponse, status: number, code: string, headers = {}) =>
    sendJson(
      response,
      status,
      { code, detail: 'On purpose.', errors: [{ path: '/a', message: 'x' }] },
      headers,
    );
  const server = await startScriptedServer(t, ({ method, url, body }, response, attempt) => {
    if (method === 'DELETE' && attempt > 1) problem(response, 404, 'not_found');
    else if (method === 'DELETE' || /execute$|function-calls$/.test(url)) response.destroy();
    else if (url.endsWith('ui-values') && attempt === 1) response.destroy();
    else if (url.endsWith('ui-values'))
      sendJson(response, 200, {
        sessionId: 'nb_1',
        status: 'completed',
        cells: [],
        unknown: [],
        failures: [],
        error: null,
      });
    else if (url.endsWith('nb_down')) problem(response, 503, 'unavailable');
    else if (url.endsWith('nb_bad')) problem(response, 400, 'invalid_request');
    else if (attempt > 1) sendJson(response, 201, notebook(`nb_${attempt}`));
    else if (body.title === 'cut') response.destroy();
    else if (body.title === 'in-progress') problem(response, 409, 'idempotency_in_progress');
    else if (body.title === 'retry-after') problem(response, 429, 'quota_exceeded', { 'retry-after': '1' });
    else problem(response, 500, 'internal');
  });
  assert.deepEqual(await outcomeOf('retries.py', server.baseUrl), {
    ...{ created: 'nb_2', cut: 'nb_2', busy: 'nb_2', waited: true, progress: 'nb_2' },
    code: true,
    function: true,
    values: 'completed',
    down: [503, 'unavailable'],
    bad: [400, 'invalid_request', '/a'],
    nowhere: true,
  });
  const keys = server.requests
    .filter(({ method, url }) => method === 'POST' && url === '/api/v3/notebooks')
    .map(({ headers }) => headers['idempotency-key']);
  assert.equal(keys.length, 8);
  assert.equal(new Set(keys).size, 4, 'the attempts of a request have one key');
  const attempts = (end: string) => server.requests.filter(({ url }) => url.endsWith(end)).length;
  assert.deepEqual(
    ['execute', 'function-calls', 'ui-values', 'nb_down', 'nb_bad'].map(attempts),
    [1, 1, 2, 5, 1],
  );
});

test('when the answer to a change is lost, the change takes effect once, and the conflict of its repetition is reported as the lost connection', async (t) => {
  const server = await startServer(t);
  const proxy = await startCuttingProxy(t, server.baseUrl, { answer: /^(PATCH|PUT|DELETE|POST)/ });
  assert.deepEqual(await outcomeOf('lost_answers.py', proxy.baseUrl), {
    ...{ update: 'stale_update', title: 'after', request: 'stale_update', conflict: 'stale_update' },
    ...{ file: 'kept', files: [], run: 'completed', closed: 'closed' },
  });
});

test('a PATCH that was lost on its way, or refused, is repeated, and takes effect', async (t) => {
  const server = await startServer(t);
  const proxy = await startCuttingProxy(t, server.baseUrl, { request: /^PATCH/ });
  assert.deepEqual(await outcomeOf('repeated_patch.py', proxy.baseUrl), ['after', 'later']);
});

test('a session is busy in the loop over the events of its run, and ready as soon as the loop has ended', async (t) => {
  const server = await startServer(t);
  assert.deepEqual(await outcomeOf('session_status.py', server.baseUrl), ['ready', 'busy', 'ready']);
});

test('members, events and parts of outputs from a later version of the server are ignored', async (t) => {
  const later = { addedLater: { deep: [1, null] } };
  const cell = { ...later, mimetype: 'text/plain', data: '6', text: '6' };
  const runRecord = {
    ...later,
    ...{ id: 'run_1', kind: 'notebook', sessionId: 'nb_1', status: 'completed', error: null },
    ...{ input: { type: 'all', ...later }, createdAt: TIME, startedAt: TIME, finishedAt: TIME },
    output: {
      stored: true,
      parts: [
        { type: 'hologram', size: 3 },
        {
          ...later,
          type: 'cell-result',
          cellId: 'a',
          status: 'success',
          outputs: [cell],
          console: [],
          durationMs: 1,
        },
      ],
    },
  };
  const event = (id: number, type: string, data: object) =>
    `id: e-${id}\ndata: ${JSON.stringify({ ...later, type, sessionId: 'nb_1', runId: 'run_1', time: TIME, missed: true, data })}\n\n`;
  const snapshot = { ...later, type: 'session.snapshot', sessionId: 'nb_1', time: TIME, resumed: true };
  const session = {
    ...later,
    ...{
      sessionId: 'nb_1',
      notebookId: 'nb_1',
      url: '/n/nb_1/',
      environmentId: null,
      mode: 'edit',
      arguments: [],
      status: 'busy',
    },
    ...{ startup: null, phases: {}, currentRunId: 'run_1', cells: [], kernel: null, error: null },
    ...{ ttlS: null, idleTimeoutS: null, expiresAt: null, createdAt: TIME, updatedAt: TIME },
  };
  const server = await startScriptedServer(t, ({ method, url }, response) => {
    if (method === 'POST') sendJson(response, 202, { ...runRecord, runId: 'run_1', lastEventId: 'e-0' });
    else if (url.startsWith('/api/v3/runs?'))
      sendJson(response, 200, { ...later, items: [runRecord], nextCursor: null });
    else if (url.startsWith('/api/v3/runs/')) sendJson(response, 200, runRecord);
    else {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(
        `id: e-1\nretry: 5\nlater: yes\ndata: ${JSON.stringify({ ...snapshot, data: session })}\n\n`,
      );
      response.write(event(2, 'run-status', { ...later, runId: 'run_1', status: 'running' }));
      response.write(event(3, 'cell-hologram', { cellId: 'a' }));
      response.write(event(4, 'cell-op', { ...later, cellId: 'a', status: 'dreaming' }));
      response.write(event(5, 'console-output', { ...later, cellId: 'a', channel: 'stdout', text: 'x' }));
      response.write(event(6, 'run-status', { ...later, runId: 'run_1', status: 'completed' }));
    }
  });
  assert.deepEqual(await outcomeOf('later_server.py', server.baseUrl), {
    types: ['run-status', 'console-output', 'run-status'],
    status: 'completed',
    cells: { a: '6' },
    listed: [1],
  });
});
