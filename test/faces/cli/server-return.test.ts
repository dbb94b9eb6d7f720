// tier: whole, because it kills, fills and restarts servers of several processes
/** `troupe run` and `troupe agent prompt` while their server is stopped or killed and started again, and runs that continue without their command. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { ConnectionError } from '#src/contract/client/api-error.ts';
import { type Client, createClient } from '#src/contract/client/client.ts';
import type { Run } from '#src/contract/wire/run.ts';
import { ServerReturn } from '#src/faces/cli/run/server-return.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { freePort } from '#test/support/stand-ins/reverse-proxies.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';
import { marimoFile } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const shell = new Shell(test, server);

const TRAINING = `import time
for step in range(2000):
    print("step", step, flush=True)
    time.sleep(0.05)`;

function file({ cwd }: Shell, name: string, code = TRAINING): string {
  writeFileSync(join(cwd, name), marimoFile({ train: code }));
  return name;
}

/** Resolves with the statuses of all sessions and environments that are not closed. */
async function open(client: Client): Promise<string[]> {
  const [sessions, environments] = [
    await client.notebookSessions.list(),
    await client.executionEnvironments.list(),
  ];
  return [...sessions.items, ...environments.items]
    .map(({ status }) => status)
    .filter((status) => status !== 'closed');
}

async function follow(t: TestContext, signal: NodeJS.Signals) {
  const before = await startChildServer(t, { TROUPE_PORT: String(await freePort()) });
  const own = new Shell(t, { baseUrl: before.baseUrl, owner: OWNER });
  const child = own.start(['run', file(own, 'training.py')]);
  await child.until('step 5');
  await before.end(signal);
  await child.until('The server does not answer; waiting up to 60 s for it.');
  const { client } = await before.again();
  const ended = await child.ended;
  const [run] = (await client.runs.list()).items;
  assert.ok(run);
  assert.ok(ended.out.includes(run.id), ended.out);
  assert.match(ended.err, /\nThe server is back\.\n/);
  assert.equal(ended.exitCode, 1, ended.err);
  assert.deepEqual(await open(client), []);
  return { run, ended };
}

test('a run whose server is stopped and started again is reported as failed, and no session stays open', async (t) => {
  const { run, ended } = await follow(t, 'SIGTERM');
  assert.deepEqual([run.status, run.error?.code], ['failed', 'server_stopped']);
  assert.match(ended.out, /\nfailed in .*run_\w+\nserver_stopped /);
});

test('a run whose server is killed and started again is reported as lost, and no session stays open', async (t) => {
  const { run, ended } = await follow(t, 'SIGKILL');
  assert.deepEqual([run.status, run.stale], ['running', true]);
  assert.match(ended.out, /\nlost when the server stopped.*run_\w+\n/);
});

/** Sends a prompt whose server ends in the middle of the answer, and is started again. */
async function ask(t: TestContext, signal: NodeJS.Signals) {
  const model = await startScriptedModel(t);
  model.script((exchange) => void exchange.text('I am '));
  const before = await startChildServer(t, {
    TROUPE_PORT: String(await freePort()),
    TROUPE_OPENAI_COMPATIBLE_URL: model.url,
    TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
  });
  const own = new Shell(t, { baseUrl: before.baseUrl, owner: OWNER });
  const id = await own.text(['agent', 'new']);
  const child = own.start(['agent', 'prompt', id, 'Talk.']);
  await child.until('I am ');
  await before.end(signal);
  await child.until('The server does not answer; waiting up to 60 s for it.');
  const { client } = await before.again();
  const ended = await child.ended;
  assert.match(ended.err, /\nThe server is back\.\n/);
  assert.equal(ended.out, 'I am \n', 'the text is shown once');
  assert.equal(ended.exitCode, 1, ended.err);
  const { items } = await client.agentSessions.listRuns(id);
  assert.equal(items.length, 1, 'the prompt is not sent again');
  assert.equal((await client.agentSessions.get(id)).status, 'ready');
  return { run: items[0]!, ended };
}

test('a prompt whose server is stopped and started again is reported as failed', async (t) => {
  const { run, ended } = await ask(t, 'SIGTERM');
  assert.deepEqual([run.status, run.error?.code], ['failed', 'server_stopped']);
  assert.match(ended.err, /\nfailed server_stopped: /);
});

test('a prompt whose server is killed and started again is reported as lost', async (t) => {
  const { run, ended } = await ask(t, 'SIGKILL');
  assert.deepEqual([run.status, run.stale], ['running', true]);
  assert.match(ended.err, /\nthe server stopped unexpectedly during this run\n/);
});

test('the command stops waiting for a server that does not return in time, and no later step waits for that server', async () => {
  const baseUrl = `http://127.0.0.1:${await freePort()}`;
  const client = createClient({ baseUrl, accessToken: OWNER.token, workspaceId: OWNER.workspaceId });
  const said: string[] = [];
  const gone = new ServerReturn({ say: (text) => said.push(text), giveUpAfterMs: 1000 });
  const since = performance.now();
  await assert.rejects(
    gone.attempt(() => client.me()),
    ConnectionError,
  );
  const waitedMs = performance.now() - since;
  assert.ok(waitedMs > 1000, String(waitedMs));
  assert.deepEqual(
    [said, gone.hasGivenUp],
    [['The server does not answer; waiting up to 1 s for it.'], true],
  );
  let attempts = 0;
  const count = () => {
    attempts++;
    return client.me();
  };
  await assert.rejects(gone.attempt(count), ConnectionError);
  assert.equal(attempts, 1);
});

test('--detach prints the id of the run, which continues; its session and environment end afterwards', async () => {
  const { client } = server;
  const name = file(
    shell,
    'detached.py',
    'import time\nfor step in range(20):\n    print("step", step)\n    time.sleep(0.1)',
  );
  const started = await shell.troupe(['run', name, '--detach']);
  assert.equal(started.exitCode, 0, started.err);
  const runId = started.out.trim();
  assert.match(runId, /^run_\w+$/);
  assert.ok(started.err.includes(`follow it: troupe runs tail ${runId}\n`), started.err);
  assert.equal((await client.runs.get(runId)).status, 'running');
  const tailed = await shell.troupe(['runs', 'tail', runId]);
  assert.equal(tailed.exitCode, 0, tailed.err);
  assert.match(tailed.out, /step 0\n[\s\S]*step 19\n[\s\S]*completed in /);
  await eventually('the session has ended by itself', async () => (await open(client)).length === 0);
});

test('--detach with --json prints the notebook and the run in progress', async () => {
  const { client } = server;
  const name = file(shell, 'detached-json.py');
  const { notebookId, run } = await shell.json<{ notebookId: string; run: Run }>(['run', name, '--detach']);
  assert.deepEqual([run.status, run.sessionId], ['running', notebookId]);
  assert.equal((await client.notebookSessions.get(notebookId)).idleTimeoutS, 20);
  assert.equal(await shell.text(['runs', 'cancel', run.id]), `${run.id} is cancelled.`);
  await client.notebookSessions.close(notebookId);
});

test('--detach is refused with options that need the end of the run, and no run begins', async () => {
  const name = file(shell, 'refused.py');
  for (const [option, ...value] of [
    ['--rm'],
    ['--output', 'report.html'],
    ['--fetch', 'out.csv'],
    ['--output-dir', 'plots'],
  ] as const) {
    const { exitCode, out, err } = await shell.troupe(['run', name, '--detach', option, ...value]);
    assert.deepEqual(
      [exitCode, out, err],
      [2, '', `troupe: ${option} needs the end of the run, but --detach does not wait for the end.\n`],
    );
  }
  assert.deepEqual((await server.client.notebooks.list({ title: 'refused' })).items, []);
});

test('Ctrl-\\ leaves the run running, and the output explains how to follow and to end the run', async () => {
  const { client } = server;
  const child = shell.start(['run', file(shell, 'left.py')]);
  await child.until('step 3');
  child.quit();
  const { exitCode, err } = await child.ended;
  assert.equal(exitCode, 130, err);
  const [, runId = ''] =
    /\n(run_\w+) continues\. Its session ends by itself after the run\.\n/.exec(err) ?? [];
  assert.ok(err.endsWith(`follow it: troupe runs tail ${runId}\nend it: troupe runs cancel ${runId}\n`), err);
  const run = await client.runs.get(runId);
  assert.equal(run.status, 'running');
  await client.notebookSessions.close(run.sessionId);
});
