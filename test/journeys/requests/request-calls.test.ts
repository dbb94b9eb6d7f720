/**
 * How many calls of our functions a request costs: the length of its way through the code, which no machine's speed changes.
 * A change that needs more calls has to be worth them; then the number here is raised with it.
 */
import assert from 'node:assert/strict';
import http from 'node:http';
import test from 'node:test';
import { countCalls, described, total } from '#test/support/call-count.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { descendants, eventually, kernelsOf } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const MAX_CALLS_OF_A_GET = 50;
const MAX_CALLS_UNTIL_A_RUN_IS_ACCEPTED = 350;

const server = await startServer(test);
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
test.after(() => agent.destroy());

/** Sends a request and resolves with its status when the head of the response has come. */
function send(method: string, path: string, body?: unknown): Promise<number> {
  const { token, workspaceId } = server.owner;
  const headers = {
    authorization: `Bearer ${token}`,
    'service-workspace-id': workspaceId,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  return new Promise((resolve, reject) => {
    const request = http.request(`${server.baseUrl}${path}`, { method, headers, agent }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    request.on('error', reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

test('a GET of a notebook stays within its budget of calls', async (t) => {
  const notebook = await server.client.notebooks.create({});
  const get = () => send('GET', `/api/v3/notebooks/${notebook.id}`);
  for (let i = 0; i < 20; i++) assert.equal(await get(), 200);
  const counts = await countCalls(get);
  t.diagnostic(`${total(counts)} calls of ${counts.size} functions`);
  assert.ok(total(counts) <= MAX_CALLS_OF_A_GET, described(counts));
});

test('an execution stays within its budget of calls until it is accepted', async (t) => {
  const notebook = await openNotebook(server, { a: '1 + 1' });
  for (let i = 0; i < 10; i++) await notebook.run(['a']);
  const kernels = kernelsOf(server.pid).flatMap((kernel) => [kernel, ...descendants(kernel.pid)]);
  const signal = (name: NodeJS.Signals) => {
    for (const { pid } of kernels) process.kill(pid, name);
  };
  const path = `/api/v3/notebook-sessions/${notebook.id}/executions`;
  const execute = async () =>
    assert.equal(await send('POST', path, { type: 'cells', cells: [{ cellId: 'a' }] }), 202);
  const counts = await countCalls(execute, {
    before: () => signal('SIGSTOP'), // so that nothing of the run itself is counted
    async after() {
      signal('SIGCONT');
      await eventually('the run has ended', async () => (await notebook.record()).currentRunId === null);
    },
  });
  t.diagnostic(`${total(counts)} calls of ${counts.size} functions`);
  assert.ok(total(counts) <= MAX_CALLS_UNTIL_A_RUN_IS_ACCEPTED, described(counts));
});
