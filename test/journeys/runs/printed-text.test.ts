/** The printed text of a run outlives the process that runs it. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { type ChildServer, startChildServer } from '#test/support/child-server.ts';
import { openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { eventually, workersOf } from '#test/support/processes.ts';

const CELLS = {
  load: 'print("loaded")\nrows = 7',
  silent: 'total = rows + 1',
  train: `import sys, time
print("begun", total, file=sys.stderr)
for step in range(2000):
    print("step", step, flush=True)
    time.sleep(0.05)`,
};

/** Runs the cells until the last one has printed for more than a second, whose beginning is then stored. */
async function runFor(server: ChildServer) {
  const notebook = await openNotebook(server, CELLS);
  const events = await notebook.events();
  const runId = await notebook.submit([]);
  await events.until(({ type, data }) => type === 'console-output' && data.text.includes('step 40\n'));
  await events[Symbol.asyncDispose]();
  return { notebook, runId };
}

async function showsPrintedText({ client }: Pick<ChildServer, 'client'>, runId: string) {
  const run = await client.runs.get(runId);
  assert.deepEqual([run.status, run.stale, run.finishedAt], ['running', true, null]);
  const [load, train, ...others] = results(run);
  assert.ok(load && train);
  assert.deepEqual(others, []);
  assert.deepEqual([load.cellId, load.status, printed(load)], ['load', 'success', 'loaded\n']);
  assert.ok((load.durationMs ?? -1) >= 0);
  assert.deepEqual([train.cellId, train.status, train.durationMs], ['train', 'interrupted', null]);
  assert.deepEqual(
    train.console.map(({ channel }) => channel),
    ['stderr', 'stdout'],
  );
  assert.match(printed(train), /^begun 8\nstep 0\n(step \d+\n)*step 10\n/);
  const warnings = run.output?.parts.filter(({ type }) => type === 'warning');
  assert.deepEqual(warnings, [
    {
      type: 'warning',
      code: 'output_lost',
      message:
        'The server ended before this run did. Only printed text is kept of it, without that of its last second.',
    },
  ]);
  return run;
}

test('a run that kill -9 of the server interrupts shows its printed text, before and after it is cancelled', async (t) => {
  const server = await startChildServer(t);
  const { runId } = await runFor(server);
  assert.equal((await server.client.runs.get(runId)).output, null, 'a run in progress has no output');
  await server.end('SIGKILL');
  const after = await server.again();
  const { client } = after;
  const run = await showsPrintedText(after, runId);
  const [listed] = (await client.runs.list({ include: 'output' })).items;
  assert.deepEqual(listed, run);
  const [short] = (await client.runs.list()).items;
  assert.deepEqual([short?.output, short?.outputOmitted, short?.stale], [null, true, true]);

  await client.runs.cancel(runId);
  const cancelled = await client.runs.get(runId);
  assert.deepEqual([cancelled.status, cancelled.output], ['cancelled', run.output]);
  await after.end('SIGKILL');
  const last = await after.again();
  assert.deepEqual(await last.client.runs.get(runId), cancelled);
});

test('a run that kill -9 of its worker interrupts shows its printed text in another worker', async (t) => {
  const server = await startChildServer(t, { TROUPE_WORKERS: '2' });
  const { runId } = await runFor(server);
  for (const { pid } of workersOf(server.pid)) process.kill(pid, 'SIGKILL');
  await eventually('the run is left behind', async () => {
    const run = await server.client.runs.get(runId).catch(() => undefined);
    return run?.stale === true;
  });
  await showsPrintedText(server, runId);
});

test('a run that has ended has its own output and no stored text, even after long printing', async (t) => {
  const server = await startChildServer(t);
  const { notebook, runId } = await runFor(server);
  await server.client.runs.cancel(runId);
  const run = await server.client.waitForRun(runId);
  assert.deepEqual(
    results(run).map(({ cellId, status }) => [cellId, status]),
    [
      ['load', 'success'],
      ['silent', 'success'],
      ['train', 'interrupted'],
    ],
  );
  assert.match(printed(results(run)[2]!), /step 40\n/);
  await notebook.close();
});

test('a run with no-store leaves no printed text behind', async (t) => {
  const server = await startChildServer(t);
  const notebook = await openNotebook(server, CELLS);
  const events = await notebook.events();
  const runId = await notebook.submit({ type: 'all', cacheMode: 'no-store' });
  await events.until(({ type, data }) => type === 'console-output' && data.text.includes('step 40\n'));
  await events[Symbol.asyncDispose]();
  await server.end('SIGKILL');
  const { client } = await server.again();
  const run = await client.runs.get(runId);
  assert.deepEqual([run.stale, run.output], [true, null]);
});
