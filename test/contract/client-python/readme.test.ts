/** The programs in the README of the Python package: each runs as it is printed, the agents with scripted models. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'node:test';
import { SNIPPETS } from '#src/faces/cli/snippets.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';
import { emptyFolder, PACKAGE, PYTHON, run } from './python.ts';

/** Longer programs are not read. */
const MAX_LINES = 25;
/** The code that the model sends, one call after the other: the second needs the names of the first. */
const CALLS = ['amounts = [10, 32]', 'sum(amounts)'];

const agentModel = await startScriptedModel(test);
agentModel.always((exchange) => exchange.text('42.').end());
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: agentModel.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const modelUrl = await startCompletions();

const programs = [...readFileSync(join(PACKAGE, 'README.md'), 'utf8').matchAll(/```python\n(.*?)```/gs)].map(
  ([, code]) => code!,
);
const first = SNIPPETS.python({ baseUrl: server.baseUrl, workspaceId: OWNER.workspaceId }).text;
const [notebooks, open, code, files, jobs, hooks, asynchronous, pydanticAi, langGraph, openai] = programs;

for (const { name, program, shown } of [
  { name: 'the program of `troupe init python`', program: first, shown: '6\n60\n' },
  { name: 'the program of the README about notebooks', program: notebooks, shown: '6\n60\n' },
  {
    name: 'the program of the README about open notebooks',
    program: open,
    shown: /^\[\('square', 'success'\)\]\n\['value'\]\nhttp:\S+\/n\/nb_\w+\/\n$/,
  },
  { name: 'the program of the README about code', program: code, shown: /mean +1\.5\S* +21\.0/ },
  { name: 'the program of the README about files, datasources and agents', program: files, shown: '42.\n' },
  {
    name: 'the program of the README about jobs',
    program: jobs,
    shown: /^\['\d{4}-.*'\]\n\d{4}-\S+ due None None\n$/,
  },
  {
    name: 'the program of the README about hooks',
    program: hooks,
    shown: /^whsec_\S+\nhook\.test pending .*\n$/,
  },
  { name: 'the program of the README about asyncio', program: asynchronous, shown: '42\n' },
  { name: 'the program of the README about pydantic-ai', program: pydanticAi, shown: 'The sum is 42.\n' },
  { name: 'the program of the README about LangGraph', program: langGraph, shown: 'The sum is 42.\n' },
  { name: 'the program of the README about openai', program: openai, shown: 'The sum is 42.\n' },
]) {
  test(`${name} runs as it is printed`, async (t) => {
    assert.ok(program!.trim().split('\n').length < MAX_LINES);
    const folder = emptyFolder(t);
    const isComplete = /^(import|from) /m.test(program!);
    writeFileSync(
      join(folder, 'program.py'),
      isComplete ? program! : `from troupe_client import Troupe\n${program}`,
    );
    const output = await run(PYTHON, ['program.py'], {
      cwd: folder,
      env: {
        PYTHONPATH: PACKAGE,
        SERVICE_BASE_URL: server.baseUrl,
        SERVICE_ACCESS_TOKEN: OWNER.token,
        SERVICE_WORKSPACE_ID: OWNER.workspaceId,
        OPENAI_BASE_URL: modelUrl,
        OPENAI_API_KEY: 'none',
      },
    });
    if (typeof shown === 'string') assert.equal(output, shown);
    else assert.match(output, shown);
  });
}

test('the README has no program that is not tested', () => {
  assert.equal(programs.length, 10);
});

/** Starts a model that calls the tool twice and then reports the last result. Returns its address. */
async function startCompletions(): Promise<string> {
  const completions = createServer(async (request, response) => {
    const { messages, tools } = await bodyOf(request);
    const answered = messages.filter(({ role }) => role === 'tool').length;
    const source = CALLS[answered];
    const message =
      source === undefined
        ? { role: 'assistant', content: `The sum is ${messages.at(-1)!.content}.` }
        : {
            role: 'assistant',
            content: null,
            tool_calls: [
              {
                id: `call_${answered}`,
                type: 'function',
                function: { name: tools[0]!.function.name, arguments: JSON.stringify({ source }) },
              },
            ],
          };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1,
        model: 'scripted',
        choices: [{ index: 0, message, finish_reason: source === undefined ? 'stop' : 'tool_calls' }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
    );
  });
  await new Promise<void>((listening) => completions.listen(0, '127.0.0.1', listening));
  test.after(async () => {
    completions.closeAllConnections();
    completions.close();
  });
  return `http://127.0.0.1:${(completions.address() as AddressInfo).port}/v1`;
}

async function bodyOf(request: IncomingMessage) {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString()) as {
    readonly messages: readonly { readonly role: string; readonly content: string }[];
    readonly tools: readonly { readonly function: { readonly name: string } }[];
  };
}
