import assert from 'node:assert/strict';
import test from 'node:test';
import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';
import { callCode } from '#test/support/code-call.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

test('when 8 sessions are called 50 times each at once, every caller gets exactly its own output', async () => {
  const notebooks = await Promise.all(
    Array.from({ length: 8 }, (_, session) => openNotebook(server, { a: `mine = ${session}` })),
  );
  await Promise.all(notebooks.map((notebook) => notebook.run(['a'])));
  // Two callers of each session, so that their calls collide.
  const callers = notebooks.flatMap((notebook, session) => [
    callInTurn(notebook, session, 0, 25),
    callInTurn(notebook, session, 25, 50),
  ]);
  await Promise.all(callers);
  await Promise.all(notebooks.map((notebook) => notebook.close()));
});

async function callInTurn(notebook: OpenNotebook, session: number, from: number, to: number): Promise<void> {
  for (let number = from; number < to; ) {
    const marker = `${session}.${number}`;
    const code = `import sys\nprint("out", mine, "${marker}")\nprint("err ${marker}", file=sys.stderr)\n"value ${marker}"`;
    const answer = await callCode(client, notebook.id, code).catch((error: { code?: string }) => error);
    if ('code' in answer && answer.code === 'session_busy') continue;
    assert.deepEqual(answer, {
      success: true,
      output: {
        mimetype: 'text/html',
        data: `<pre class='text-xs'>&#x27;value ${marker}&#x27;</pre>`,
        text: `'value ${marker}'`,
      },
      media: [],
      stdout: `out ${session} ${marker}\n`,
      stderr: `err ${marker}\n`,
      errors: [],
    });
    number++;
  }
}

const ENDLESS = {
  'a loop': 'while True: pass',
  'a sleep': 'import time\ntime.sleep(600)',
  'an await': 'import asyncio\nawait asyncio.sleep(600)',
  'a cell that it runs':
    'import marimo._code_mode as cm\nasync with cm.get_context() as ctx:\n    ctx.run_cell(ctx.create_cell("while True: pass"))',
} as const;

for (const [what, code] of Object.entries(ENDLESS)) {
  test(`when a client disconnects during ${what}, the code is interrupted, and the session is ready again with its variables`, async () => {
    const notebook = await openNotebook(server, { a: 'x = 7' });
    await notebook.run(['a']);
    await using events = await notebook.events();
    const abort = new AbortController();
    const call = callCode(client, notebook.id, `print("begun", flush=True)\n${code}`, {
      signal: abort.signal,
    });
    const left = assert.rejects(call);
    await events.until(({ type }) => type === 'console-output');
    if (what === 'a cell that it runs') {
      const isCell = ({ type, data }: NotebookStreamEvent) =>
        type === 'cell-op' && data.cellId !== '__scratch__' && data.status === 'running';
      await events.until(isCell);
    }
    abort.abort();
    await left;
    const end = await events.until(({ type }) => type === 'execution-completed');
    assert.ok(end.type === 'execution-completed');
    assert.deepEqual([end.data.success, end.data.stdout.startsWith('begun')], [false, true]);
    await client.notebookSessions.waitUntilReady(notebook.id);
    assert.equal((await callCode(client, notebook.id, 'print(x)')).stdout, '7\n');
    await notebook.close();
  });
}

test('a client that disconnects during a short call harms nothing', async () => {
  const notebook = await openNotebook(server, { a: 'x = 7' });
  for (let i = 0; i < 40; i++) {
    const abort = new AbortController();
    const call = callCode(client, notebook.id, 'sum(range(10_000))', { signal: abort.signal }).catch(
      () => {},
    );
    setTimeout(() => abort.abort(), i / 8);
    await call;
  }
  await client.notebookSessions.waitUntilReady(notebook.id);
  assert.equal((await callCode(client, notebook.id, 'print("fine")')).stdout, 'fine\n');
  await notebook.close();
});

test('closing a session ends its code call, and the result of the call reports the interruption', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using events = await notebook.events();
  const call = callCode(client, notebook.id, 'print("begun", flush=True)\nwhile True: pass');
  await events.until(({ type }) => type === 'console-output');
  await notebook.close();
  const { success, stdout, errors } = await call;
  assert.deepEqual([success, stdout, errors[0]?.type], [false, 'begun\n', 'session_closed']);
});

test('slow code sends heartbeats until its result, even if the code fails', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const answer = await fetch(`${server.baseUrl}/api/cee/kernel/execute`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${OWNER.token}`,
      'service-workspace-id': OWNER.workspaceId,
      'service-session-id': notebook.id,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ code: 'import os, time\ntime.sleep(1.3)\nos._exit(9)' }),
  });
  const text = await answer.text();
  assert.match(text, /^ +\{/);
  const { success, errors } = JSON.parse(text);
  assert.deepEqual([answer.status, success, errors[0].type], [200, false, 'kernel_exited']);
  await client.notebookSessions.waitUntilReady(notebook.id);
  await notebook.close();
});
