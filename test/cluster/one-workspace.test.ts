/** One workspace in a server of several workers: each of its notebooks and conversations is at home in one of them. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { AgentLog } from '#test/support/agent-log.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { sendRaw } from '#test/support/raw-request.ts';
import { OWNER } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const SIZE = 3;
/**
 * In one of some hundreds of runs, one of three workers is the home of all notebooks. No test of
 * this file fails because of that.
 */
const NOTEBOOKS = 8;
/** This many connections reach all workers, except in one of some thousands of runs. */
const AT_ONCE = 24;

const model = await startScriptedModel(test);
const server = await startChildServer(test, {
  TROUPE_WORKERS: String(SIZE),
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client, baseUrl } = server;

/** Returns the different answers to a request that is sent to all workers, over a connection for each request. */
async function answersTo<T>(method: string, path: string, factOf: (body: never) => T): Promise<T[]> {
  const answers = await Promise.all(
    Array.from({ length: AT_ONCE }, () => sendRaw(baseUrl, method, path, OWNER, {})),
  );
  return [...new Set(answers.map(({ body }) => JSON.stringify(factOf(body as never))))].map((fact) =>
    JSON.parse(fact),
  );
}

async function opened(count: number, code: string): Promise<OpenNotebook[]> {
  const notebooks: OpenNotebook[] = [];
  for (let n = 0; n < count; n++) notebooks.push(await openNotebook(server, { a: code }));
  return notebooks;
}

const closeAll = (notebooks: readonly OpenNotebook[]) => Promise.all(notebooks.map((one) => one.close()));

test('the kernels of one workspace belong to several workers', async () => {
  const notebooks = await opened(NOTEBOOKS, '1');
  await eventually('the workers have all kernels', async () => {
    const { workers = [] } = await client.server();
    const counts = workers.map(({ kernels }) => kernels);
    return (
      counts.reduce((sum, count) => sum + count, 0) === NOTEBOOKS && counts.filter((n) => n > 0).length > 1
    );
  });
  const sessions = notebooks.map(({ id }) => id).sort();
  const listed = await answersTo('GET', '/api/v3/kernels', ({ items }: { items: { sessionId: string }[] }) =>
    items.map(({ sessionId }) => sessionId).sort(),
  );
  assert.deepEqual(listed, [sessions]);
  const actors = await answersTo(
    'GET',
    '/api/v3/actors?kind=notebook-session&limit=100',
    ({ items }: { items: { id: string }[] }) => items.map(({ id }) => id).sort(),
  );
  assert.deepEqual(actors, [sessions]);
  await closeAll(notebooks);
});

test('every worker reads, runs, follows and cancels sessions whose home is another worker', async () => {
  const [quick, slow] = [
    await opened(2, '6 * 7'),
    await opened(2, 'import time\nwhile True: time.sleep(0.01)'),
  ];
  for (const notebook of [...quick, ...slow]) {
    const path = `/api/v3/notebook-sessions/${notebook.id}`;
    assert.deepEqual(await answersTo('GET', path, ({ status }: { status: string }) => status), ['ready']);
  }
  for (const notebook of quick) {
    const run = await notebook.run({ type: 'all' });
    assert.equal(run.status, 'completed');
  }
  const runIds = await Promise.all(slow.map((notebook) => notebook.submit({ type: 'all' })));
  for (const runId of runIds) {
    const path = `/api/v3/runs/${runId}`;
    assert.deepEqual(await answersTo('GET', path, ({ status }: { status: string }) => status), ['running']);
  }
  const cancelled = await client.runs.cancelMany(runIds);
  assert.deepEqual(
    cancelled.map(({ runId }) => runId),
    runIds,
  );
  for (const runId of runIds) assert.equal((await client.waitForRun(runId)).status, 'cancelled');
  await closeAll([...quick, ...slow]);
});

test('an output that notebooks of several workers share stays with each notebook until that notebook is deleted', async () => {
  const markup = 'x'.repeat(100_000);
  const notebooks = await opened(NOTEBOOKS, 'import marimo as mo\nmo.Html("x" * 100_000)');
  const runs = await Promise.all(notebooks.map((notebook) => notebook.run({ type: 'all' })));
  await closeAll(notebooks);
  const [kept, ...deleted] = notebooks;
  const [keptRun] = runs;
  await Promise.all(deleted.map(({ id }) => client.notebooks.delete(id)));
  const listed: string[] = [];
  for await (const { id } of client.runs.each()) listed.push(id);
  assert.deepEqual(
    listed.filter((id) => runs.some((run) => run.id === id)),
    [keptRun!.id],
  );
  const assets = keptRun!.output!.parts.flatMap((part) => (part.type === 'asset' ? [part] : []));
  const path = `/api/v3/runs/${keptRun!.id}/assets/${assets[0]!.assetId}`;
  assert.deepEqual(await answersTo('GET', path, (bytes) => String(bytes)), [markup]);
  const file = await sendRaw(baseUrl, 'GET', `/api/v3/notebooks/${kept!.id}/export?format=ipynb`, OWNER, {});
  assert.ok(JSON.stringify(file.body).includes(markup));
});

test('every worker serves the large outputs that events of sessions in other workers name', async () => {
  const notebooks = await opened(2, 'import marimo as mo\nmo.Html("y" * 100_000)');
  for (const notebook of notebooks) {
    await using events = await notebook.events();
    await notebook.run({ type: 'all' });
    const [output] = events.dataOf('cell-op').flatMap((op) => op.output ?? []);
    const path = `/api/v3/notebook-sessions/${notebook.id}/assets/${output?.assetId}`;
    assert.deepEqual(await answersTo('GET', path, String), ['y'.repeat(100_000)]);
  }
  await closeAll(notebooks);
});

test('paging the runs of a workspace misses no run that several workers store at once', async () => {
  const notebooks = await opened(6, '1');
  const listed: string[] = [];
  let after: string | undefined;
  const follow = async () => {
    for (;;) {
      const page = await client.runs.list({ limit: 10, ...(after && { after }) });
      listed.push(...page.items.map(({ id }) => id));
      after = listed.at(-1) ?? after;
      if (page.nextCursor === null) return;
    }
  };
  await follow();
  let isOver = false;
  const working = Promise.all(
    notebooks.map(async (notebook) => {
      for (let n = 0; n < 12; n++) await notebook.run({ type: 'all' });
    }),
  ).finally(() => {
    isOver = true;
  });
  while (!isOver) await follow();
  await working;
  await follow();
  const all: string[] = [];
  for await (const { id } of client.runs.each({ limit: 100 })) all.push(id);
  assert.deepEqual(listed, all);
  await closeAll(notebooks);
});

test('conversations of one workspace answer in every worker', async () => {
  const { environmentId } = await client.executionEnvironments.create();
  const ids: string[] = [];
  for (let n = 0; n < NOTEBOOKS; n++)
    ids.push((await client.agentSessions.open({ environmentId })).sessionId);
  for (const [n, sessionId] of ids.entries()) {
    const log = await AgentLog.open(client, sessionId);
    model.script((exchange) => exchange.text(`answer ${n}`).end());
    const { runId } = await client.agentSessions.prompt(sessionId, `question ${n}`);
    await log.over(runId);
    assert.equal(log.text(), `answer ${n}`);
    await log[Symbol.asyncDispose]();
  }
  const listed: string[] = [];
  for await (const { sessionId } of client.agentSessions.each({ limit: 3 })) listed.push(sessionId);
  assert.deepEqual(
    listed.filter((id) => ids.includes(id)),
    ids,
  );
  const environment = await client.executionEnvironments.get(environmentId);
  assert.deepEqual([...environment.agentSessionIds].sort(), [...ids].sort());
  await Promise.all(ids.map((id) => client.agentSessions.close(id)));
  assert.deepEqual((await client.executionEnvironments.get(environmentId)).agentSessionIds, []);
});

test('fifty openings of one notebook that reach different workers open one session', async () => {
  const { id } = await client.notebooks.create({ serialization: { cells: [] } });
  const { environmentId } = await client.executionEnvironments.create();
  const body = { notebookId: id, environmentId };
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => sendRaw(baseUrl, 'POST', '/api/v3/notebook-sessions', OWNER, { body })),
  );
  const accepted = answers.filter(({ status }) => status === 202);
  assert.equal(accepted.length, 1, JSON.stringify(answers.map(({ status }) => status)));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([202, 409]));
  await client.notebookSessions.close(id);
});
