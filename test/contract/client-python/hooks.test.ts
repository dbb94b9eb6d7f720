/** Hooks in the Python client, with a receiver on a real socket. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { hookReceiver } from '#test/support/stand-ins/hook-receiver.ts';
import { PACKAGE, PROGRAMS, PYTHON, run } from './python.ts';

test('a program makes, tests, replays, rotates, pauses and deletes a hook, and fires a job at a hook in', async (t) => {
  const server = await startServer(t);
  const receiver = await hookReceiver(t);
  const env = {
    SERVICE_BASE_URL: server.baseUrl,
    SERVICE_ACCESS_TOKEN: OWNER.token,
    SERVICE_WORKSPACE_ID: OWNER.workspaceId,
    RECEIVER: receiver.url,
    PYTHONPATH: PACKAGE,
  };
  const outcome = JSON.parse(await run(PYTHON, [join(PROGRAMS, 'hooks.py')], { cwd: PACKAGE, env }));
  const { secrets, deliveries, ...out } = outcome.out;
  assert.deepEqual(out, {
    refused: 'hook_paused',
    status: 'idle',
    events: ['job.failed'],
    listed: true,
    paused: true,
    left: 0,
  });
  assert.deepEqual(
    receiver.received.map(({ id }) => id),
    deliveries,
  );
  assert.equal(deliveries[0], deliveries[1]);
  receiver.received[0]?.verify(secrets[0]);
  for (const secret of secrets) receiver.received[2]?.verify(secret);
  assert.deepEqual(outcome.in, { status: 202, listed: [[true, 'CI']], triggers: ['hook'], left: 0 });
});
