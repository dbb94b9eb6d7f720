/** The Python client when its calls are cancelled: the next call works, and nothing stays open. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventuallyAsBefore, openThings } from '#test/support/open-things.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';
import { PACKAGE, PROGRAMS, PYTHON, run } from './python.ts';
import { startScriptedServer } from './scripted-server.ts';

const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: 'http://127.0.0.1:9',
  TROUPE_DEFAULT_MODEL: 'openai-compatible/none',
});
const ACCESS = {
  PYTHONPATH: PACKAGE,
  SERVICE_BASE_URL: server.baseUrl,
  SERVICE_ACCESS_TOKEN: OWNER.token,
  SERVICE_WORKSPACE_ID: OWNER.workspaceId,
};

/** Runs a program that uses a client of the server. Resolves with its output. */
async function outcomeOf(program: string): Promise<unknown> {
  return JSON.parse(await run(PYTHON, [join(PROGRAMS, program)], { cwd: PACKAGE, env: ACCESS }));
}

test('after a caller has abandoned a code call, the next call of a Python program waits until the kernel is free', async () => {
  assert.deepEqual(await outcomeOf('left_calls.py'), ['2', 'completed']);
});

test('a Python program that is cancelled or interrupted during an opening or a wait for a run leaves nothing open', async () => {
  const { id } = await server.client.notebooks.create({ serialization: { cells: [] } });
  const open = await openNotebook(server, { endless: 'while True: pass' });
  const before = await openThings(server.client);
  const program = spawn(PYTHON, [join(PROGRAMS, 'cancelled_calls.py'), open.id, id], {
    env: { PATH: process.env.PATH, ...ACCESS },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(program, 'exit');
  let ways = 0;
  for await (const way of createInterface({ input: program.stdout })) {
    assert.match(way, /^async .*: CancelledError$|^sync .*: KeyboardInterrupt$/);
    await eventuallyAsBefore(server.client, before, way);
    program.stdin.write('\n');
    ways++;
  }
  assert.deepEqual(await ended, [0, null]);
  assert.ok(ways >= 50, `${ways} ways`);
});

test('a Python program finds the runs that ended since its last poll, by status and member', async () => {
  const { runs, since, before } = (await outcomeOf('ended_runs.py')) as {
    runs: string[];
    since: string[][];
    before: string[];
  };
  assert.deepEqual(since, [runs, runs.slice(1)]);
  assert.deepEqual(before, runs.slice(0, 1));
});

test('a Python program reads the tokens of models by day', async (t) => {
  const model = await startScriptedModel(t);
  model.always((exchange) => exchange.text('Fine.').end());
  const settings = { TROUPE_OPENAI_COMPATIBLE_URL: model.url, TROUPE_DEFAULT_MODEL: 'openai-compatible/m' };
  const { baseUrl } = await startServer(t, settings);
  const env = { ...ACCESS, SERVICE_BASE_URL: baseUrl };
  const printed = await run(PYTHON, [join(PROGRAMS, 'model_usage.py')], { cwd: PACKAGE, env });
  assert.deepEqual(JSON.parse(printed), { page: 1, sums: [['openai-compatible/m', 100, 10, 1]], before: 0 });
});

test('data frames have the types of their tables, exceptions can be pickled, and Jupyter gets the specification of a chart', async () => {
  const program = join(PROGRAMS, 'exact_values.py');
  await run(PYTHON, [program], { cwd: PACKAGE, env: { PYTHONPATH: PACKAGE } });
});

test('a Python call of a silent server ends after its timeout, and requests of the Python client name the client', async (t) => {
  const silent = await startScriptedServer(t, () => {});
  const program = `
from troupe_client import ConnectionFailed, Troupe
try:
    Troupe(timeout=0.5).open("nb_1")
except ConnectionFailed:
    print("silent")
`;
  const env = { ...ACCESS, SERVICE_BASE_URL: silent.baseUrl };
  assert.equal(await run(PYTHON, ['-c', program], { cwd: PACKAGE, env }), 'silent\n');
  assert.equal(silent.requests.length, 1);
  assert.match(silent.requests[0]!.headers['user-agent'] ?? '', /^troupe-client-python\/1\.0\.0$/);
});
