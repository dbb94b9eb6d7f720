/**
 * The cost of requests and runs, in counts that are the same on every machine: commits, frames, bytes, writes,
 * transitions.
 */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { Envelope } from '#src/contract/wire/events.ts';
import { callCode } from '#test/support/code-call.ts';
import { scrape } from '#test/support/metrics.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { HAS_WORKERS, startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';
import { StreamWrites } from '#test/support/stream-writes.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
  TROUPE_HEARTBEAT_S: '60',
});
const { client } = server;
const notebook = await openNotebook(server, { one: '1 + 1' });
const endless = await openNotebook(server, { loop: 'while True:\n    pass' });

/**
 * Returns how many commits and transitions were made during `work`, after which nothing is left to
 * do.
 */
async function counted(work: () => Promise<unknown>) {
  const before = await scrape(server);
  await work();
  const after = await scrape(server);
  const grown = (series: string) => (after.get(series) ?? 0) - (before.get(series) ?? 0);
  return {
    commits: grown('troupe_store_commit_duration_seconds_count'),
    transitionsOf: (kind: string) => grown(`troupe_actor_transitions_total{kind="${kind}"}`),
  };
}

async function commitsOf(work: () => Promise<unknown>): Promise<number> {
  return (await counted(work)).commits;
}

const framesIn = (text: string) =>
  (text.match(/^data: .*$/gm) ?? []).map((line) => JSON.parse(line.slice('data: '.length)) as Envelope);

/** Follows the notebook with some subscribers. Resolves when they have its state. */
async function followers(t: TestContext, count: number): Promise<readonly StreamWrites[]> {
  const path = `/api/v3/notebook-sessions/${notebook.id}/events`;
  const streams = await Promise.all(Array.from({ length: count }, () => StreamWrites.open(server, path)));
  t.after(() => streams.forEach((stream) => void stream.close()));
  for (const stream of streams) await stream.until('session.replayed');
  return streams;
}

test('a request that changes one record makes one commit, and a request that only reads makes none', async () => {
  const cells = [{ cell_id: 'a', code: 'x = 1' }];
  let { id, updatedAt } = await client.notebooks.create();
  const change = async () => {
    const fields = { expectedUpdatedAt: updatedAt, serialization: { cells } };
    ({ id, updatedAt } = await client.notebooks.update(id, fields));
  };
  const works: readonly (readonly [number, () => Promise<unknown>])[] = [
    [1, () => client.notebooks.create({ serialization: { cells } })],
    [1, change],
    [0, () => client.notebooks.get(id)],
    [0, () => client.notebooks.list({ title: 'x' })],
    [0, () => client.runs.list({ sessionId: notebook.id, status: 'failed' })],
    [1, () => client.executionEnvironments.create()],
  ];
  for (const [expected, work] of works) assert.equal(await commitsOf(work), expected, String(work));
});

test('a run makes two commits, at its beginning and its end, and each actor makes one transition in each', async () => {
  await notebook.run([]);
  const run = await counted(() => notebook.run([]));
  assert.equal(run.commits, 2);
  assert.deepEqual([run.transitionsOf('run'), run.transitionsOf('notebook-session')], [1, 2]);
});

test('a code call makes no commit, and a cancelled run makes at most one commit more than other runs, for the audit', async () => {
  await callCode(client, notebook.id, '1 + 1');
  const ofCall = await commitsOf(() => callCode(client, notebook.id, '1 + 1'));
  // Other workers read from the store that the session is busy, and that it is ready again.
  if (HAS_WORKERS) assert.ok(ofCall <= 2, `${ofCall} commits`);
  else assert.equal(ofCall, 0);
  const cancelled = async () => {
    const runId = await endless.submit([]);
    await client.runs.cancel(runId);
    assert.equal((await client.waitForRun(runId)).status, 'cancelled');
  };
  await cancelled();
  const ofCancelled = await commitsOf(cancelled);
  // The entry in the audit is committed with the end of the run, unless that takes longer than the entry waits.
  assert.ok(ofCancelled >= 2 && ofCancelled <= 3, `${ofCancelled} commits`);
});

test('a prompt with an immediate answer makes two commits', async () => {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await client.agentSessions.open({ environmentId });
  const ask = () => {
    model.script((exchange) => exchange.text('The ', 'answer').end());
    return client.agentSessions.ask(sessionId, 'What?');
  };
  await ask();
  assert.equal(await commitsOf(ask), 2);
});

test('a run of one cell has few frames, and each subscriber gets at most one write in a turn', async (t) => {
  await notebook.run([]);
  const streams = await followers(t, 3);
  const from = streams.map(({ writes }) => writes.length);
  await notebook.run([]);
  for (const [i, stream] of streams.entries()) await stream.until('"status":"ready"', from[i]);
  const [first, ...others] = streams.map(({ writes }, i) => writes.slice(from[i]));
  for (const other of others) assert.deepEqual(other, first);
  const frames = first!.map(framesIn);
  const bytes = first!.join('').length;
  t.diagnostic(`${first!.length} writes, ${frames.flat().length} frames, ${bytes} bytes`);
  const statuses = (events: readonly Envelope[] = []) =>
    events.flatMap((event) =>
      event.type === 'run-status' || event.type === 'session.status' ? [event.data.status] : [],
    );
  assert.deepEqual(statuses(frames[0]), ['running', 'busy'], 'what one commit tells is one write');
  assert.deepEqual(statuses(frames.at(-1)), ['completed', 'ready']);
  // The cell has three states, and each is one event. The kernel sends the output and the last
  // state one after the other. If the server reads both at once, they are one event; otherwise the
  // output is an event of its own.
  assert.ok(first!.length <= 4, `${first!.length} writes`);
  assert.ok(frames.flat().length <= 8, `${frames.flat().length} frames`);
  assert.ok(bytes <= 1_900, `${bytes} bytes`);
});
