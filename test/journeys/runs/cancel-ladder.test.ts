import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import test from 'node:test';
import type { Run } from '#src/contract/wire/run.ts';
import { callCode } from '#test/support/code-call.ts';
import type { EventLog } from '#test/support/event-log.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { descendants, eventually, gone, processSeenAs } from '#test/support/processes.ts';
import { tally } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const GRACE_MS = 3_000;
const server = await startServer(test, { TROUPE_SUBSCRIBER_BUFFER_BYTES: '262144' });
const { client } = server;

interface Begun {
  readonly notebook: OpenNotebook;
  readonly events: EventLog;
  readonly runId: string;
}

/**
 * A cell `a` that prints `begun`. It comes after a cell `kept`, whose variable shows whether the
 * kernel survived.
 */
async function begin(code: string): Promise<Begun> {
  const notebook = await openNotebook(server, { kept: 'kept = 7', a: `print("begun", flush=True)\n${code}` });
  await notebook.run(['kept']);
  const events = await notebook.events();
  const runId = await notebook.submit(['a']);
  const sign = code.includes('begun again') ? 'begun again' : 'begun';
  await events.until(({ type, data }) => type === 'console-output' && data.text.includes(sign));
  if (code === CALL_OF_C) await computes(notebook);
  return { notebook, events, runId };
}

/** A long call during which Python sees no interrupt. */
const CALL_OF_C = 'sum(range(10**11))';

/** Resolves when the kernel has worked for a tenth of a second: it has gone from the print before the call of C into the call. */
async function computes({ id }: OpenNotebook): Promise<void> {
  const pid =
    (await client.kernels()).items.find(({ sessionId }) => sessionId === id)?.pid ?? assert.fail(id);
  const ticksOf = (one: number) =>
    Number(readFileSync(`/proc/${one}/stat`, 'latin1').replace(/^.*\)/, '').split(' ')[12]);
  // The first process of a kernel's namespace has the kernel itself below it.
  const processes = [pid, ...descendants(pid).map((one) => one.pid)];
  const ticks = () => processes.reduce((sum, one) => sum + ticksOf(one), 0);
  const before = ticks();
  await eventually('the kernel computes', () => ticks() >= before + 10);
}

/** Cancels and waits for the end. Returns the time until then and the statuses of the session. */
async function cancelled({
  notebook,
  events,
  runId,
}: Begun): Promise<{ run: Run; tookMs: number; statuses: string[] }> {
  const from = events.events.length;
  const startedAt = performance.now();
  await client.runs.cancel(runId);
  await events.until(
    ({ type, data }) => type === 'run-status' && data.runId === runId && data.status !== 'running',
  );
  const tookMs = performance.now() - startedAt;
  await client.notebookSessions.waitUntilReady(notebook.id);
  await eventually('the subscriber heard that it is ready', () =>
    events.events.slice(from).some(({ type, data }) => type === 'session.status' && data.status === 'ready'),
  );
  const statuses = events.events
    .slice(from)
    .flatMap((event) => (event.type === 'session.status' ? [event.data.status] : []));
  return { run: await client.runs.get(runId), tookMs, statuses };
}

const INTERRUPTIBLE = {
  'a loop': 'while True: pass',
  'a sleep': 'import time\ntime.sleep(1000)',
  'an awaited sleep': 'import asyncio\nawait asyncio.sleep(1000)',
  'a wait for a child process': 'import subprocess\nsubprocess.run(["sleep", "1000"])',
  'a loop that swallows exceptions': 'while True:\n  try:\n    while True: pass\n  except Exception: pass',
  'much printing': 'while True: print("x" * 1000)',
};

for (const [what, code] of Object.entries(INTERRUPTIBLE)) {
  test(`cancelling ${what} interrupts the cell and keeps the variables`, async () => {
    const begun = await begin(code);
    const { run, statuses } = await cancelled(begun);
    // After the time of grace the kernel would have been killed.
    assert.deepEqual([run.status, run.error], ['cancelled', null]);
    assert.deepEqual(statuses, ['ready']);
    assert.deepEqual(
      (await callCode(client, begun.notebook.id, 'kept')).output?.data,
      "<pre class='text-xs'>7</pre>",
    );
    await finish(begun);
  });
}

const STUBBORN = {
  // The cell prints that it has begun only at a point where it already swallows interrupts.
  'a loop that swallows interrupts':
    'said = False\nwhile True:\n  try:\n    if not said: said = True; print("begun again", flush=True)\n    while True: pass\n  except BaseException: pass',
  'a long call of C': CALL_OF_C,
};

for (const [what, code] of Object.entries(STUBBORN)) {
  test(`cancelling ${what} kills the kernel after three seconds, and the run names the lost variables`, async () => {
    const begun = await begin(code);
    const { run, tookMs, statuses } = await cancelled(begun);
    assert.equal(run.status, 'cancelled');
    assert.equal(run.error?.code, 'kernel_killed');
    assert.match(run.error?.message ?? '', /variables of the notebook are lost/);
    assert.deepEqual(statuses, ['restoring', 'ready']);
    assert.ok(tookMs >= GRACE_MS - 50, `it took ${tookMs} ms`);
    const told = begun.events.dataOf('run-status').filter(({ status }) => status === 'cancelled');
    assert.deepEqual(
      told.map(({ runId, error }) => [runId, error?.code]),
      [[begun.runId, 'kernel_killed']],
    );
    const record = await begun.notebook.record();
    assert.deepEqual(
      [record.status, record.error, record.environmentId],
      ['ready', null, begun.notebook.environmentId],
    );
    const memory = await callCode(client, begun.notebook.id, 'kept');
    assert.equal(memory.errors[0]?.type, 'NameError');
    await finish(begun);
  });
}

test('a cancel ends the processes that a cell has started, even detached processes', async () => {
  const begun = await begin(
    [
      'import os, subprocess',
      'same = subprocess.Popen(["sh", "-c", "trap : INT; while :; do sleep 1000; done"])',
      'own = subprocess.Popen(["sh", "-c", "trap \'\' INT TERM HUP; sleep 1000"], start_new_session=True)',
      'double = subprocess.run(["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True)',
      'pids, said = [same.pid, own.pid, double.stdout.strip(), os.readlink("/proc/self/ns/pid")], False',
      'while True:',
      '  try:',
      '    if not said: said = True; print("pids", *pids, flush=True)',
      '    own.wait()',
      '  except BaseException: pass',
    ].join('\n'),
  );
  const printed = await eventually('the pids', () => {
    const found = /pids (\d+) (\d+) (\d+) (pid:\S+])/.exec(begun.events.printed('a'));
    return found ?? undefined;
  });
  const processes = printed.slice(1, 4).map((pid) => processSeenAs(Number(pid), printed[4]!)!);
  assert.equal(processes.filter(Boolean).length, 3);
  const { run } = await cancelled(begun);
  assert.deepEqual([run.status, run.error?.code], ['cancelled', 'kernel_killed']);
  await gone(processes);
  await finish(begun);
});

test('a run whose kernel must be killed accepts each of fifty cancels that comes before its end, and ends once', async () => {
  const begun = await begin(CALL_OF_C);
  const storm = Array.from({ length: 50 }, () => client.runs.cancel(begun.runId));
  // On a busy machine some cancels arrive after the kernel was killed.
  const { ok = 0, '409 run_finished': late = 0, ...other } = await tally(storm);
  assert.deepEqual([ok + late, ok > 0, other], [50, true, {}]);
  await begun.events.until(({ type, data }) => type === 'run-status' && data.status === 'cancelled');
  await begun.events.until(({ type, data }) => type === 'session.status' && data.status === 'restoring');
  assert.deepEqual(statusesOf(begun), ['running', 'cancelled']);
  await finish(begun);
});

test('a kernel whose output waits for a slow reader can still be interrupted', async () => {
  const notebook = await openNotebook(server, { kept: 'kept = 7', a: 'while True: print("x" * 100_000)' });
  await notebook.run(['kept']);
  const { hostname, port } = new URL(server.baseUrl);
  const { authorization, workspace } = {
    authorization: `Bearer ${server.owner.token}`,
    workspace: server.owner.workspaceId,
  };
  let received = 0;
  const slow = get({
    hostname,
    port,
    path: `/api/v3/notebook-sessions/${notebook.id}/events`,
    headers: { authorization, 'service-workspace-id': workspace },
  });
  const pace = setInterval(() => slow.emit('pace'), 30);
  slow.on('response', (response) => {
    // A reader that takes a few bytes at a time, so that it is slow and never stalled.
    response.on('readable', () => {});
    slow.on('pace', () => {
      received += (response.read(16_384) ?? response.read())?.length ?? 0;
    });
  });
  slow.on('error', () => {});
  await eventually('the reader follows', () => received > 0);
  const runId = await notebook.submit(['a']);
  await eventually('it lags behind', () => received > 400_000);
  await client.runs.cancel(runId);
  const run = await client.waitForRun(runId);
  assert.deepEqual([run.status, run.error], ['cancelled', null]);
  clearInterval(pace);
  slow.destroy();
  assert.equal((await callCode(client, notebook.id, 'kept')).success, true);
  await notebook.close();
});

test('a code call whose caller disconnects is interrupted, and the session becomes ready', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using events = await notebook.events();
  const leaving = new AbortController();
  const call = callCode(client, notebook.id, 'print("begun", flush=True)\nwhile True: pass', {
    signal: leaving.signal,
  });
  await events.until(({ type }) => type === 'console-output');
  leaving.abort(new Error('gone'));
  await assert.rejects(call, /gone/);
  await events.until(({ type, data }) => type === 'session.status' && data.status === 'ready');
  assert.equal((await callCode(client, notebook.id, '1 + 1')).success, true);
  await notebook.close();
});

/** The events of the run that subscribers got, without those of earlier runs. */
function statusesOf({ events, runId }: Begun): string[] {
  return events.dataOf('run-status').flatMap((data) => (data.runId === runId ? [data.status] : []));
}

async function finish({ notebook, events }: Begun): Promise<void> {
  await events[Symbol.asyncDispose]();
  await notebook.close();
}
