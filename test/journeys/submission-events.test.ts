/**
 * The reply to a submission is the run, with the id from which the session's stream shows the run's
 * events.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { StreamEvent } from '#src/contract/wire/events.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const MODEL = 'openai-compatible/scripted';
const model = await startScriptedModel(test);
const settings = { TROUPE_OPENAI_COMPATIBLE_URL: model.url };
const SERVERS = [
  { name: 'one process', server: await startServer(test, settings) },
  { name: 'three workers', server: await startServer(test, { ...settings, TROUPE_WORKERS: '3' }) },
];

/** Returns the events of a stream after its snapshot, up to the end of the run. */
async function eventsOf(stream: AsyncIterable<StreamEvent>, runId: string): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for await (const event of stream) {
    if (event.type !== 'session.snapshot') events.push(event);
    if (event.type === 'run-status' && event.data.runId === runId && event.data.status !== 'running') break;
  }
  return events;
}

for (const { name, server } of SERVERS) {
  const { client } = server;

  test(`${name}: a stream opened with the lastEventId of an execution has its events from the first to the last`, async () => {
    const notebook = await openNotebook(server, { a: 'print("one")\n1' });
    await notebook.run(['a']);
    const code = 'print("two")\n2';
    for (const cell of [{ cellId: 'a' }, { cellId: 'a', code }]) {
      const submitted = await client.executions.submit(notebook.id, { type: 'cells', cells: [cell] });
      const { runId, lastEventId } = submitted;
      const ended = await client.waitForRun(runId);
      // Several subscribers, because each connection reaches any of the workers.
      for (let subscriber = 0; subscriber < 3; subscriber++) {
        const events = await eventsOf(client.notebookSessions.follow(notebook.id, { lastEventId }), runId);
        assert.deepEqual(
          [events[0]?.type, events[0]?.data],
          ['run-status', { runId, status: 'running', createdBy: 'owner' }],
        );
        const printed = events.flatMap((event) => (event.type === 'console-output' ? [event.data.text] : []));
        assert.equal(printed.join(''), 'code' in cell ? 'two\n' : 'one\n');
        assert.deepEqual(events.at(-1)?.data, { runId, status: ended.status, createdBy: 'owner' });
      }
    }
    await notebook.close();
  });

  test(`${name}: a stream opened with the lastEventId of a prompt has the prompt, its answer and the end of its run`, async () => {
    const { environmentId } = await client.executionEnvironments.create();
    const config = { model: MODEL };
    const { sessionId } = await client.agentSessions.open({ environmentId, config });
    for (const text of ['One.', 'Two.']) {
      model.script((exchange) => exchange.text(text).end());
      const { runId, lastEventId } = await client.agentSessions.prompt(sessionId, 'Say it.');
      await client.waitForRun(runId);
      const events = await eventsOf(client.agentSessions.follow(sessionId, { lastEventId }), runId);
      const entries = events.flatMap((event) =>
        event.type === 'agent-entry' && event.data.runId === runId ? [event.data] : [],
      );
      assert.deepEqual(
        entries.map(({ role }) => role),
        ['user', 'assistant'],
      );
      assert.deepEqual(entries[1]?.content, [{ type: 'text', text }]);
    }
  });

  test(`${name}: the 200 and 202 responses of a submission have the members of the run, and also runId and lastEventId`, async () => {
    const notebook = await openNotebook(server, { a: '1' });
    const path = `/api/v3/notebook-sessions/${notebook.id}/executions`;
    const request = { body: { type: 'all' }, headers: { 'idempotency-key': 'once' } };
    const accepted = await server.request('POST', path, request);
    const { runId, lastEventId, ...begun } = Object(accepted.body);
    const run = await client.waitForRun(runId);
    assert.deepEqual(begun, { ...run, status: 'running', output: null, finishedAt: null });
    const again = await server.request('POST', path, request);
    assert.deepEqual([again.status, again.body], [202, accepted.body]);
    const waited = await server.request('POST', `${path}?wait=60`, request);
    assert.deepEqual([waited.status, waited.body], [200, { runId, lastEventId, ...run }]);
    const other = await server.request('POST', `${path}?wait=60`, { body: { type: 'all' } });
    const { runId: otherId, lastEventId: place, ...otherRun } = Object(other.body);
    assert.equal(other.status, 200);
    assert.deepEqual(otherRun, await client.runs.get(otherId));
    assert.notEqual(place, lastEventId);
    await notebook.close();
  });
}
