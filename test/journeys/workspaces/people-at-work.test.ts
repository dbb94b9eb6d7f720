/** Members who work in one notebook: refusals, events and records name the others, and no one overwrites them unknowingly. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { ApiError } from '#src/contract/client/api-error.ts';
import { AgentLog } from '#test/support/agent-log.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { problemOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;
const ada = await addMember(server, 'ada', 'editor');
const LOOP = 'import time\nprint("begun", flush=True)\ntime.sleep(600)';

const member = (error: ApiError, name: string): unknown => Object(error.body)[name];

test('a busy session names its run and the member who submitted the run, and the events of the run name the member', async () => {
  const notebook = await openNotebook(server, { loop: LOOP });
  await using events = await notebook.events();
  const { runId } = await ada.client.executions.submit(notebook.id, { type: 'all' });
  await events.until(({ type }) => type === 'console-output');
  const error = await problemOf(notebook.submit(['loop']));
  assert.deepEqual([error.status, error.code], [409, 'session_busy']);
  assert.deepEqual(member(error, 'busyWith'), { kind: 'run', runId, createdBy: 'ada' });
  assert.ok(error.message.includes(`It is busy with the run ${runId}, for ada.`), error.message);
  await client.runs.cancel(runId);
  await events.until(({ type, data }) => type === 'run-status' && data.status === 'cancelled');
  assert.deepEqual(
    events.dataOf('run-status').map(({ status, createdBy }) => [status, createdBy]),
    [
      ['running', 'ada'],
      ['cancelled', 'ada'],
    ],
  );
  await using late = await notebook.events();
  assert.deepEqual(
    late.dataOf('run-status').map(({ status, createdBy }) => [status, createdBy]),
    [['cancelled', 'ada']],
  );
  await notebook.close();
});

test('a session that is busy with a code call names the member, and no run', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using events = await notebook.events();
  const leave = new AbortController();
  const call = ada.client.code.execute(notebook.id, LOOP, { signal: leave.signal }).catch(() => {});
  await events.until(({ type, data }) => type === 'session.status' && data.status === 'busy');
  const error = await problemOf(notebook.submit(['a']));
  assert.deepEqual(member(error, 'busyWith'), { kind: 'code', createdBy: 'ada' });
  assert.ok(error.message.includes('It is busy with code that was sent to it, for ada.'), error.message);
  leave.abort();
  await call;
  await notebook.close();
});

test('the event, the record, the run and later refusals of a closed session name the member who closed the session', async () => {
  const notebook = await openNotebook(server, { loop: LOOP });
  await using events = await notebook.events();
  const runId = await notebook.submit(['loop']);
  await events.until(({ type }) => type === 'console-output');
  const closed = await ada.client.notebookSessions.close(notebook.id);
  assert.deepEqual([closed.status, closed.closedBy], ['closed', 'ada']);
  await events.until(({ type }) => type === 'session.closed');
  assert.deepEqual(events.dataOf('session.closed'), [{ reason: 'closed', closedBy: 'ada' }]);
  const { status, error } = await client.runs.get(runId);
  assert.deepEqual(
    [status, error],
    [
      'cancelled',
      { code: 'session_closed', message: 'The session was closed by ada while this was running.' },
    ],
  );
  assert.equal((await notebook.record()).closedBy, 'ada');
  for (const request of [() => notebook.submit(['loop']), () => notebook.close()]) {
    const refusal = await problemOf(request());
    assert.deepEqual([refusal.code, member(refusal, 'closedBy')], ['session_closed', 'ada']);
    assert.ok(refusal.message.includes('ada has closed it.'), refusal.message);
  }
  const { environmentId } = notebook;
  const again = await client.notebookSessions.open({ notebookId: notebook.id, environmentId });
  assert.equal(again.closedBy, undefined, 'an open session names nobody');
  await notebook.close();
});

test('the event, the record, the list and later refusals of a closed conversation name the member who closed the conversation', async () => {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId, closedBy } = await client.agentSessions.open({ environmentId });
  assert.equal(closedBy, undefined);
  await client.agentSessions.grant(sessionId, 'ada');
  const log = await AgentLog.open(client, sessionId);
  const closed = await ada.client.agentSessions.close(sessionId);
  assert.deepEqual([closed.status, closed.closedBy], ['closed', 'ada']);
  await log.ended;
  assert.deepEqual(log.dataOf('session.closed'), [{ reason: 'closed', closedBy: 'ada' }]);
  assert.equal((await client.agentSessions.get(sessionId)).closedBy, 'ada');
  const { items } = await client.agentSessions.list({ status: 'closed' });
  assert.equal(items.find((one) => one.sessionId === sessionId)?.closedBy, 'ada');
  const refusal = await problemOf(client.agentSessions.close(sessionId));
  assert.deepEqual([refusal.code, member(refusal, 'closedBy')], ['session_closed', 'ada']);
  const again = await client.agentSessions.open({ environmentId, id: sessionId });
  assert.equal(again.closedBy, undefined, 'an open conversation names nobody');
  await client.agentSessions.close(sessionId);
  assert.equal((await client.agentSessions.get(sessionId)).closedBy, 'owner');
});

test('a session that ends by itself names nobody', async () => {
  const { id: notebookId } = await client.notebooks.create({});
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId, environmentId, ttlS: 1 });
  const closed: unknown[] = [];
  for await (const { type, data } of client.notebookSessions.follow(notebookId))
    if (type === 'session.closed') closed.push(data);
  assert.deepEqual(closed, [{ reason: 'closed' }]);
  assert.equal((await client.notebookSessions.get(notebookId)).closedBy, undefined);
});

test('an execution that expects an earlier state of the notebook is refused with the present state, and changes nothing', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = 1' });
  const read = await client.notebooks.get(notebook.id);
  const request = (code: string, expectedUpdatedAt: string | null) =>
    ({ type: 'cells', cells: [{ cellId: 'a', code }], expectedUpdatedAt }) as const;
  const submitted = await ada.client.executions.run(notebook.id, request('x = 2', read.updatedAt));
  assert.equal(submitted.status, 'completed', 'it is the newest version');
  const { updatedAt } = await client.notebooks.get(notebook.id);
  const error = await problemOf(notebook.submit(request('x = 3', read.updatedAt)));
  assert.deepEqual([error.status, error.code, member(error, 'updatedAt')], [409, 'stale_update', updatedAt]);
  const all = { type: 'all', expectedUpdatedAt: read.updatedAt } as const;
  assert.equal((await problemOf(notebook.submit(all))).code, 'stale_update', 'without new code, too');
  const now = await client.notebooks.get(notebook.id);
  assert.deepEqual(
    [now.updatedAt, now.serialization.cells[0]?.code, now.updatedBy],
    [updatedAt, 'x = 2', 'ada'],
  );
  assert.equal((await client.executions.list(notebook.id)).items.length, 1, 'no run was made');
  const other = updatedAt.replace('Z', '+00:00');
  assert.equal((await notebook.run(request('x = 4', other))).status, 'completed', 'another spelling');
  assert.equal((await notebook.run(request('x = 5', null))).status, 'completed', 'null means omitted');
  const { status, code } = await problemOf(notebook.submit(request('x = 6', 'yesterday')));
  assert.deepEqual([status, code], [400, 'invalid_request']);
  await notebook.close();
});

test('an execution with new code for an earlier version of a cell is refused with the present version, and versions of other cells are not compared', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = 1' });
  const versionOf = async (cellId: string) =>
    (await notebook.record()).cells.find((cell) => cell.cellId === cellId)?.version;
  const [before, other] = [await versionOf('a'), await versionOf('b')];
  const request = (cellId: string, code: string, version: number | null | undefined) =>
    ({ type: 'cells', cells: [{ cellId, code, version: version ?? null }] }) as const;
  await ada.client.executions.run(notebook.id, request('a', 'x = 2', before));
  const present = await versionOf('a');
  const error = await problemOf(notebook.submit(request('a', 'x = 3', before)));
  assert.deepEqual([error.status, error.code], [409, 'stale_update']);
  assert.deepEqual(member(error, 'cells'), [{ cellId: 'a', version: present }]);
  assert.ok(error.message.includes('Cells have changed: a.'), error.message);
  const [a] = (await client.notebooks.get(notebook.id)).serialization.cells;
  assert.equal(a?.code, 'x = 2');
  assert.equal((await notebook.run(request('b', 'y = 2', other))).status, 'completed', 'another cell');
  assert.equal((await notebook.run(request('a', 'x = 4', present))).status, 'completed', 'read again');
  assert.equal((await notebook.run(request('a', 'x = 5', null))).status, 'completed', 'not compared');
  await notebook.close();
});

test('of two executions with new code that expect the same state, one is refused', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1' });
  const { updatedAt: expectedUpdatedAt } = await client.notebooks.get(notebook.id);
  const submit = (by: typeof client, code: string) =>
    by.executions.submit(notebook.id, {
      type: 'cells',
      cells: [{ cellId: 'a', code }],
      expectedUpdatedAt,
      structuralErrors: 'skip',
    });
  const outcomes = await Promise.allSettled([submit(client, 'x = 2'), submit(ada.client, 'x = 3')]);
  const reasons = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []));
  assert.equal(reasons.length, 1);
  assert.match(String(reasons[0]), /^(stale_update|session_busy)$/);
  await notebook.close();
});
