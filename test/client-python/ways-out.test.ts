/** The Python client when its calls are cancelled: the next call works, and nothing stays open. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { PACKAGE, PROGRAMS, PYTHON, run } from './python.ts';

const server = await startServer(test);

/** Runs a program with a client of the server, and resolves with what it printed. */
async function outcomeOf(program: string): Promise<unknown> {
  const env = {
    PYTHONPATH: PACKAGE,
    SERVICE_BASE_URL: server.baseUrl,
    SERVICE_ACCESS_TOKEN: OWNER.token,
    SERVICE_WORKSPACE_ID: OWNER.workspaceId,
  };
  return JSON.parse(await run(PYTHON, [join(PROGRAMS, program)], { cwd: PACKAGE, env }));
}

test('after a code call that its caller has left, the next call of a Python program waits until the kernel is free', async () => {
  assert.deepEqual(await outcomeOf('left_calls.py'), ['2', 'completed']);
});
