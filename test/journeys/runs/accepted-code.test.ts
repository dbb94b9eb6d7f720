/** A run executes the code and the settings that were accepted, however late its kernel gets them. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import type { CellChange } from '#src/contract/wire/cell-changes.ts';
import type { ExecutionRequest, Run } from '#src/contract/wire/run.ts';
import { Victim } from '#test/faults/victim.ts';
import { EventLog } from '#test/support/event-log.ts';
import { results } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER } from '#test/support/server-fixture.ts';

const folder = mkdtempSync(join(tmpdir(), 'troupe-accepted-'));
const [dataDir, points] = [join(folder, 'data'), join(folder, 'points')] as const;
for (const path of [dataDir, points]) mkdirSync(path);
const server = await Victim.start(dataDir, undefined, { FAULT_FOLDER: points });
/** The events that tests have followed. */
const logs: EventLog[] = [];
test.after(async () => {
  for (const log of logs) await log[Symbol.asyncDispose]();
  server.end('SIGTERM');
  await server.over();
  rmSync(folder, { recursive: true, force: true });
});
const { client } = server;
/** Notebooks whose runs show that the server has gone on. */
const others = await Promise.all([openNotebook({ a: '0' }), openNotebook({ a: '0' })]);

test('a run with an idempotency key executes the code that was accepted, even if the cell is edited before the run is on disk', async () => {
  const id = await openNotebook({ a: '0' });
  const accepted = { cellId: 'a', code: 'print("accepted")' };
  const { run, staleness } = await editWhileHeld(id, { type: 'cells', cells: [accepted] }, [
    { type: 'set-code', cellId: 'a', code: 'print("edited")' },
  ]);
  assert.deepEqual(run.input, { type: 'cells', cells: [accepted] });
  assert.deepEqual(printed(run), { a: 'accepted\n' });
  assert.deepEqual(staleness('a'), [true], 'the edited cell is stale all the time');
  const next = await client.executions.run(id, { type: 'all' }, { wait: 60 });
  assert.deepEqual(printed(next), { a: 'edited\n' });
});

test('a stale ancestor runs with its code at the time when the run was accepted', async () => {
  const id = await openNotebook({ a: 'x = "accepted"', b: 'print(x)' });
  const { run, staleness } = await editWhileHeld(id, { type: 'cells', cells: [{ cellId: 'b' }] }, [
    { type: 'set-code', cellId: 'a', code: 'x = "edited"' },
  ]);
  assert.deepEqual(printed(run), { a: '', b: 'accepted\n' });
  assert.deepEqual(staleness('a'), [true]);
  await eventually('the cell that needs the edited cell is stale', () => staleness('b').at(-1) === true);
  const next = await client.executions.run(id, { type: 'cells', cells: [{ cellId: 'b' }] }, { wait: 60 });
  assert.deepEqual(printed(next), { a: '', b: 'edited\n' });
});

test('a cell that is disabled or deleted after its run was accepted still runs, and is disabled or deleted afterwards', async () => {
  const id = await openNotebook({ a: 'open("ran-a", "w").close()', b: 'print("b")' });
  const { run } = await editWhileHeld(id, { type: 'all' }, [
    { type: 'delete-cell', cellId: 'a' },
    { type: 'set-config', cellId: 'b', config: { disabled: true } },
  ]);
  assert.deepEqual([run.status, printed(run)], ['completed', { b: 'b\n' }]);
  assert.equal(hasFile('ran-a'), true);
  const next = await client.executions.run(id, { type: 'cells', cells: [{ cellId: 'b' }] }, { wait: 60 });
  assert.deepEqual(
    results(next).map(({ cellId, status }) => [cellId, status]),
    [['b', 'disabled']],
  );
});

test('a run that configures cells executes the accepted code and settings, even if edits come before the kernel is configured', async () => {
  const id = await openNotebook({ a: '0' });
  const pid = (await client.kernels()).items.find(({ sessionId }) => sessionId === id)?.pid;
  assert.ok(typeof pid === 'number');
  const cell = { cellId: 'a', code: 'print("accepted")', config: { disabled: false } };
  process.kill(pid, 'SIGSTOP');
  const { runId } = await client.executions.submit(id, { type: 'cells', cells: [cell] });
  await change(id, [
    { type: 'set-code', cellId: 'a', code: 'print("edited")' },
    { type: 'set-config', cellId: 'a', config: { disabled: true } },
  ]);
  process.kill(pid, 'SIGCONT');
  assert.deepEqual(printed(await client.waitForRun(runId)), { a: 'accepted\n' });
});

/** Returns the id of a notebook with a kernel that is ready. */
async function openNotebook(codes: Readonly<Record<string, string>>): Promise<string> {
  const cells = Object.entries(codes).map(([cell_id, code]) => ({ cell_id, code, options: {} }));
  const { id } = await client.notebooks.create({ serialization: { cells } });
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId: id, environmentId });
  await client.notebookSessions.waitUntilReady(id);
  return id;
}

function change(id: string, changes: readonly CellChange[]) {
  return client.notebookSessions.change(id, { changes: [...changes] });
}

/**
 * Submits a run with an idempotency key and edits the notebook before the run's commit is flushed, which its kernel waits for.
 * Resolves with the ended run, and with a function that returns whether a cell was shown as stale, each time that this changed.
 */
async function editWhileHeld(id: string, request: ExecutionRequest, edits: readonly CellChange[]) {
  const events = await EventLog.open(client, id);
  logs.push(events);
  const hold = join(points, 'turn.flushing');
  writeFileSync(hold, '');
  // While the flush is held, no request that writes is answered. But the code of a run without a key runs, and when it has run, the
  // server has taken the requests that were sent before.
  const submitted = client.executions.submit(id, request, { idempotencyKey: `key-of-${id}` });
  const first = await ranMeanwhile(others[0]!, `first-${id}`);
  const edited = change(id, edits);
  const second = await ranMeanwhile(others[1]!, `second-${id}`);
  rmSync(hold);
  await edited;
  const run = await client.waitForRun((await submitted).runId);
  for (const { submission } of [first, second]) await client.waitForRun((await submission).runId);
  return { run, staleness: (cellId: string) => stalenessOf(cellId, events) };
}

/** Returns whether a cell was shown as stale, each time that this changed. */
function stalenessOf(cellId: string, events: EventLog): boolean[] {
  return events.dataOf('cell-op').flatMap((op) => (op.cellId === cellId ? (op.stale ?? []) : []));
}

/** Submits a run of another notebook. Resolves when its code has run, which is before the submission is answered. */
async function ranMeanwhile(other: string, file: string) {
  const cell = { cellId: 'a', code: `open("${file}", "w").close()` };
  const submission = client.executions.submit(other, { type: 'cells', cells: [cell] });
  await eventually('the other run has run', () => hasFile(file));
  return { submission };
}

function hasFile(name: string): boolean {
  return existsSync(join(dataDir, 'workspaces', OWNER.workspaceId, 'files', name));
}

/** Returns the printed text of each cell of a run. */
function printed(run: Run): Record<string, string> {
  return Object.fromEntries(
    results(run).map(({ cellId, console }) => [cellId, console.map(({ data }) => data).join('')]),
  );
}
