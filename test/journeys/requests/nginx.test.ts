import assert from 'node:assert/strict';
import test from 'node:test';
import { createClient } from '#src/contract/client/client.ts';
import { callCode } from '#test/support/code-call.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, type Owner, startServer } from '#test/support/server-fixture.ts';
import { lacks, startNginx } from '#test/support/stand-ins/reverse-proxies.ts';

const READ_TIMEOUT_S = 2; // the first session of a server on a busy machine opens within it
const skip = lacks('nginx');

/** A server with nginx in front of it, on a free port; answers both once nginx answers. */
async function startBehindNginx(owner: Owner, settings: Readonly<Record<string, string>> = {}) {
  const server = await startServer(owner, settings);
  const ways = `proxy_http_version 1.1; proxy_read_timeout ${READ_TIMEOUT_S}s;`;
  return { server, baseUrl: await startNginx(owner, `${ways} proxy_pass ${server.baseUrl};`) };
}

test('through nginx, events arrive as they happen and a silent run is not cut off', {
  skip,
}, async (t) => {
  const { baseUrl } = await startBehindNginx(t, { TROUPE_HEARTBEAT_S: '0.3' });
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

test('nginx passes on a response of the server unchanged', { skip }, async (t) => {
  const { server, baseUrl } = await startBehindNginx(t);
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

/** The body without the parts that differ between requests. */
async function stable(response: Response): Promise<string> {
  return (await response.text()).replace(/"requestId":"[^"]+"/, '');
}
