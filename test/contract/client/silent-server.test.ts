/** The client of programs and a server that is silent: every wait ends after `timeoutS`. */
import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type TestContext } from 'node:test';
import { Troupe } from '#src/contract/client/troupe.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventuallyAsBefore, openThings } from '#test/support/open-things.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const access = { accessToken: OWNER.token, workspaceId: OWNER.workspaceId };

/** Starts a server, and returns a client that waits a second for it, and how many requests it has and holds. */
async function serve(t: TestContext, listener: RequestListener) {
  let requests = 0;
  let held = 0;
  const server = createServer((request, response) => {
    requests++;
    held++;
    response.once('close', () => held--);
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const troupe = new Troupe({ ...access, baseUrl, timeoutS: 1 });
  return { baseUrl, troupe, requests: () => requests, held: () => held };
}

test('a server that accepts connections and never answers ends `open` after one request, and no connection stays', async (t) => {
  const { baseUrl, troupe, requests, held } = await serve(t, () => {});
  await assert.rejects(troupe.open('nb_1'), {
    name: 'ConnectionError',
    message: `No answer from ${baseUrl}/api/v3/notebook-sessions/nb_1: silence for 1000 ms.`,
  });
  assert.equal(requests(), 1, 'the time is over, so the request is not repeated');
  await eventually('the request is given up', () => held() === 0);
});

test('a response that falls silent is ended, and a response that goes on is not', async (t) => {
  const { troupe, held } = await serve(t, ({ url }, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write(' ');
    if (url?.startsWith('/api/v3/me')) return;
    let sent = 0;
    const timer = setInterval(() => {
      if (++sent < 5) return response.write(' ');
      clearInterval(timer);
      return response.end('{"status": "completed"}');
    }, 300);
  });
  await assert.rejects(troupe.me(), { name: 'ConnectionError' });
  assert.equal((await troupe.runs.get('run_1')).status, 'completed');
  await eventually('no request stays', () => held() === 0);
});

test('a response may come later by the seconds for which its request waits', async (t) => {
  const { troupe } = await serve(t, (_, response) => {
    setTimeout(() => response.end('{"status": "running"}'), 1_500);
  });
  assert.equal((await troupe.runs.get('run_1', { wait: 30 })).status, 'running');
});

test('a silent event stream ends', async (t) => {
  const { troupe } = await serve(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(': begun\n\n');
  });
  const follow = async () => {
    for await (const _ of troupe.followEvents('/events', { silenceMs: 100, giveUpAfterMs: 0 }));
  };
  await assert.rejects(follow(), { name: 'ConnectionError', message: /silence for 100 ms/ });
});

test('opening a busy session ends within `timeoutS`, the error names the refusal, and nothing stays open afterwards', async (t) => {
  const server = await startServer(t);
  const notebook = await openNotebook(server, { endless: 'while True: pass' });
  const run = await server.client.executions.submit(notebook.id, { type: 'all' });
  const before = await openThings(server.client);
  const troupe = new Troupe({ ...access, baseUrl: server.baseUrl, timeoutS: 1 });
  const session = await troupe.open(notebook.id);
  assert.equal(session.opened.status, 'busy');
  await assert.rejects(session.code('1'), { name: 'ApiError', code: 'session_busy' });
  await session[Symbol.asyncDispose]();
  await eventuallyAsBefore(server.client, before, 'a busy session');
  await server.client.runs.cancel(run.runId);
  await server.client.waitForRun(run.runId);
  await notebook.close();
});
