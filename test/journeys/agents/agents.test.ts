/** Conversations with an agent: prompts, answers, and their records. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Run } from '#src/contract/wire/run.ts';
import { AgentLog, said } from '#test/support/agent-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client } = server;
const environment = async () => (await client.executionEnvironments.create()).environmentId;
const parts = (run: Run) => run.output?.parts;

test('a new conversation is empty, has the default model and is attached to its environment', async () => {
  const environmentId = await environment();
  const opened = await client.agentSessions.open({ environmentId });
  const { sessionId, createdAt, updatedAt } = opened;
  assert.match(sessionId, /^conv_/);
  assert.deepEqual(opened, {
    sessionId,
    environmentId,
    notebookSessionId: null,
    ownerId: 'owner',
    createdBy: 'owner',
    status: 'ready',
    config: { model: 'openai-compatible/scripted', instructions: null },
    context: { datasourceSlugs: [] },
    currentRunId: null,
    createdAt,
    updatedAt,
    entries: [],
  });
  assert.deepEqual(await client.agentSessions.get(sessionId), opened);
  const { agentSessionIds } = await client.executionEnvironments.get(environmentId);
  assert.deepEqual(agentSessionIds, [sessionId]);
});

test('an answer is streamed while the model writes it, saved, and part of its run', async () => {
  const { sessionId } = await client.agentSessions.open({ environmentId: await environment() });
  const log = await AgentLog.open(client, sessionId);
  model.script((exchange) => exchange.reasoning('Let me think.').text('Four', 'ty ', 'two.').end());
  const { runId } = await client.agentSessions.prompt(sessionId, 'What is it?');
  const run = await client.waitForRun(runId);
  await log.over(runId);

  assert.deepEqual(
    { ...run, createdAt: '', startedAt: '', finishedAt: '' },
    {
      id: runId,
      kind: 'agent',
      sessionId,
      status: 'completed',
      input: { prompt: 'What is it?' },
      output: {
        stored: true,
        parts: [{ type: 'final-answer', markdown: 'Fourty two.' }],
        model: 'openai-compatible/scripted',
        steps: 1,
        usage: {
          ...{ inputTokens: 100, cachedInputTokens: 0, cacheWriteInputTokens: 0 },
          ...{ outputTokens: 10, reasoningTokens: 0, estimatedCalls: 0 },
        },
      },
      error: null,
      createdAt: '',
      startedAt: '',
      finishedAt: '',
      createdBy: 'owner',
    },
  );
  const session = await client.agentSessions.get(sessionId);
  assert.deepEqual(said(session), [
    ['user', [{ type: 'text', text: 'What is it?' }]],
    [
      'assistant',
      [
        { type: 'reasoning', text: 'Let me think.' },
        { type: 'text', text: 'Fourty two.' },
      ],
    ],
  ]);
  assert.deepEqual(
    session.entries.map((entry) => entry.runId),
    [runId, runId],
  );
  assert.equal(log.text(), 'Fourty two.');
  assert.equal(log.text('reasoning-delta'), 'Let me think.');
  assert.deepEqual(log.dataOf('agent-entry'), session.entries);
  assert.deepEqual(log.dataOf('text-delta')[0]?.entryId, session.entries[1]?.id);
  assert.deepEqual(log.dataOf('run-status'), [
    { runId, status: 'running', createdBy: 'owner' },
    { runId, status: 'completed', createdBy: 'owner' },
  ]);
  assert.deepEqual((await client.agentSessions.listRuns(sessionId)).items, [run]);
});

test('a cancel closes the connection to the model, and the next prompt is answered', async () => {
  const { sessionId } = await client.agentSessions.open({ environmentId: await environment() });
  const log = await AgentLog.open(client, sessionId);
  const number = model.exchanges.length;
  model.script(
    (exchange) => void exchange.text('It begins'),
    (exchange) => exchange.text('Fine.').end(),
  );
  const first = await client.agentSessions.prompt(sessionId, 'Tell me everything.');
  await log.heard('It begins');
  assert.equal(await refusalOf(client.agentSessions.prompt(sessionId, 'And?')), '409 session_busy');
  await client.runs.cancel(first.runId);
  assert.equal(await (await model.asked(number)).over, 'cut');
  const cancelled = await client.waitForRun(first.runId);
  assert.deepEqual(
    [cancelled.status, cancelled.error, parts(cancelled)],
    ['cancelled', null, [{ type: 'assistant-message', text: 'It begins' }]],
  );
  assert.equal(await refusalOf(client.runs.cancel(first.runId)), '409 run_finished');

  const second = await client.agentSessions.prompt(sessionId, 'Briefly, then.');
  assert.equal((await client.waitForRun(second.runId)).status, 'completed');
  const sent = (await model.asked(number + 1)).body.messages.slice(1);
  assert.deepEqual(
    sent.map(({ role }) => role),
    ['user'],
  );
  assert.match(String(sent[0]?.content), /^\[Note of the server: A request .*\]\n\nBriefly, then\.$/);
});

test('a subscriber that joins in the middle of an answer gets the history and the text so far', async () => {
  const { sessionId } = await client.agentSessions.open({ environmentId: await environment() });
  const log = await AgentLog.open(client, sessionId);
  const number = model.exchanges.length;
  model.script((exchange) => void exchange.reasoning('Hm. ').text('First half, '));
  const { runId } = await client.agentSessions.prompt(sessionId, 'Speak.');
  await log.heard('First half, ');
  const late = await AgentLog.open(client, sessionId);
  assert.deepEqual(late.types, [
    'session.snapshot',
    'agent-entry',
    'reasoning-delta',
    'text-delta',
    'run-status',
    'session.replayed',
  ]);
  (await model.asked(number)).text('second half.').end();
  await late.over(runId);
  assert.equal(late.text(), 'First half, second half.');
  assert.equal(late.text('reasoning-delta'), 'Hm. ');
});

test('a misspelled tool call is returned to the model as an error, and the prompt continues', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await client.agentSessions.open({
    environmentId: notebook.environmentId,
    notebookSessionId: notebook.id,
  });
  const number = model.exchanges.length;
  model.script(
    (exchange) =>
      exchange
        .calls(['read_cells', { cellIds: 'a' }], ['make_coffee', {}], ['read_output', '{"cellId": '])
        .end('tool_calls'),
    (exchange) => exchange.text('Sorry.').end(),
  );
  const { runId } = await client.agentSessions.prompt(notebook.id, 'Read.');
  const run = await client.waitForRun(runId);
  assert.equal(run.status, 'completed', JSON.stringify(run.error));
  const outputs = (parts(run) ?? []).flatMap((part) =>
    part.type === 'tool-call' ? [[part.name, part.status, part.output]] : [],
  );
  assert.deepEqual(outputs, [
    ['read_cells', 'failed', 'The input does not fit read_cells: /cellIds must be array.'],
    [
      'make_coffee',
      'failed',
      'There is no tool make_coffee. There are: run_python, read_notebook, read_cells, read_output, run_cells, list_datasources, describe_datasource, query_datasource.',
    ],
    ['read_output', 'failed', 'The call of read_output was not carried out: its arguments are not JSON.'],
  ]);
  assert.equal((await model.asked(number + 1)).body.messages.filter(({ role }) => role === 'tool').length, 3);
});

test('a request for the conversation of another person gets the same response as for an unknown conversation', async () => {
  const stranger = server.clientOf(await server.stranger());
  const { sessionId } = await client.agentSessions.open({ environmentId: await environment() });
  const environmentId = await environment();
  const calls = [
    () => stranger.agentSessions.get(sessionId),
    () => stranger.agentSessions.prompt(sessionId, 'Hello?'),
    () => stranger.agentSessions.close(sessionId),
    () => stranger.agentSessions.listRuns(sessionId),
    () => client.agentSessions.get('conv_nothing'),
    () => client.agentSessions.open({ environmentId, id: 'conv_nothing' }),
    () => client.agentSessions.open({ environmentId: 'env_nothing' }),
    () => client.agentSessions.open({ environmentId, notebookSessionId: 'nb_nothing' }),
  ];
  for (const call of calls) assert.equal(await refusalOf(call()), '404 not_found');
});

test('no frame of a stream has more than 1 MiB, and the entries contain a long answer completely', async () => {
  const { sessionId } = await client.agentSessions.open({ environmentId: await environment() });
  const frames: string[] = [];
  const over = new AbortController();
  const read = async () => {
    const response = await fetch(`${server.baseUrl}/api/v3/agent-sessions/${sessionId}/events`, {
      headers: {
        authorization: `Bearer ${server.owner.token}`,
        'service-workspace-id': server.owner.workspaceId,
      },
      signal: over.signal,
    });
    let rest = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      const all = (rest + chunk).split('\n\n');
      rest = all.pop()!;
      frames.push(...all);
      if (all.some((frame) => /"run-status"/.test(frame) && /"completed"/.test(frame))) return;
    }
  };
  const first = read();
  const text = '\u0001'.repeat(1_000_000);
  model.script((exchange) => exchange.text(text).end());
  const { runId } = await client.agentSessions.prompt(sessionId, 'Say much.');
  await client.waitForRun(runId);
  await first;
  await read(); // the history
  over.abort();
  assert.ok(frames.length > 10);
  const largest = Math.max(...frames.map((frame) => Buffer.byteLength(frame)));
  assert.ok(largest < 1024 * 1024, String(largest));
  const deltas = frames.flatMap((frame) => {
    const data = /^data: (.*)$/m.exec(frame)?.[1];
    const event = data === undefined ? undefined : JSON.parse(data);
    return event?.type === 'text-delta' ? [event.data.text as string] : [];
  });
  assert.equal(deltas.join(''), text);
  const { items } = await client.agentSessions.entries(sessionId);
  assert.deepEqual(items.at(-1)?.content, [{ type: 'text', text }]);
});
