/** The three wire protocols that vendors speak, from a stand-in server that speaks them all. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import { AgentLog } from '#test/support/agent-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const vendor = await LLMock.create({ port: 0, chunkSize: 4, strict: true });
vendor.on(
  { userMessage: 'Double', hasToolResult: false },
  {
    content: 'Let me see.',
    toolCalls: [
      { name: 'run_python', arguments: { code: 'print(a * 2)' } },
      { name: 'read_output', arguments: { cellId: 'picture' } },
    ],
  },
);
vendor.on({ userMessage: 'Double', hasToolResult: true }, { content: 'It is **42**.' });
vendor.on({ userMessage: 'Thanks' }, { content: 'You are welcome.' });
const server = await startServer(test, {
  ANTHROPIC_API_KEY: 'key-of-anthropic',
  TROUPE_ANTHROPIC_BASE_URL: `${vendor.url}/v1`,
  OPENAI_API_KEY: 'key-of-openai',
  TROUPE_OPENAI_BASE_URL: `${vendor.url}/v1`,
  TROUPE_OPENAI_COMPATIBLE_URL: `${vendor.url}/v1`,
});
test.after(() => void vendor.stop());
const PICTURE =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const CALLED: Readonly<Record<string, string>> = {
  'anthropic/claude-sonnet-4-5': '/v1/messages',
  'openai/gpt-5': '/v1/responses',
  'openai-compatible/anything': '/v1/chat/completions',
};

for (const [id, path] of Object.entries(CALLED)) {
  test(`${id} is called at ${path}, uses tools and receives their results, prompt after prompt`, async () => {
    const { client } = server;
    const notebook = await openNotebook(server, {
      a: 'a = 21',
      picture: `import marimo as mo\nmo.image("data:image/png;base64,${PICTURE}")`,
    });
    await notebook.run([]);
    await client.agentSessions.open({
      environmentId: notebook.environmentId,
      notebookSessionId: notebook.id,
      config: { model: id },
    });
    const log = await AgentLog.open(client, notebook.id);
    const before = vendor.getRequests().length;
    const run = await client.waitForRun((await client.agentSessions.prompt(notebook.id, 'Double it.')).runId);
    await log.over(run.id);
    assert.equal(run.status, 'completed', JSON.stringify(run.error));
    const parts = (run.output?.parts ?? []).map((part) =>
      part.type === 'tool-call' ? [part.name, part.status, part.output] : part,
    );
    assert.deepEqual(parts.slice(0, 2), [
      { type: 'assistant-message', text: 'Let me see.' },
      ['run_python', 'completed', 'stdout:\n42'],
    ]);
    assert.deepEqual(parts.at(2), ['read_output', 'completed', '[image/png]']);
    assert.deepEqual(parts.at(3), { type: 'final-answer', markdown: 'It is **42**.' });
    const asset = (run.output?.parts ?? []).find((part) => part.type === 'asset');
    assert.ok(asset?.type === 'asset');
    const { contentType, bytes } = await client.runs.asset(run.id, asset.assetId);
    assert.deepEqual([contentType, Buffer.from(bytes).toString('base64')], ['image/png', PICTURE]);
    assert.equal(log.text(), 'Let me see.It is **42**.');
    const next = await client.waitForRun((await client.agentSessions.prompt(notebook.id, 'Thanks.')).runId);
    assert.equal(next.status, 'completed', JSON.stringify(next.error));
    const requests = vendor.getRequests().slice(before);
    assert.deepEqual(
      requests.map((request) => request.path),
      [path, path, path],
    );
  });
}
