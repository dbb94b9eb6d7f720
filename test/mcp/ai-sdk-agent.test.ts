/** An agent of the AI SDK, unmodified, works in a notebook over MCP: a scripted model decides each step by the results of the ones before. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { createMCPClient } from '@ai-sdk/mcp';
import { stepCountIs, ToolLoopAgent } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

/** The names and the input of the calls of one step. */
type Calls = readonly (readonly [name: string, input: Readonly<Record<string, unknown>>])[];

/** The results so far, as the model reads them, and the notebook that the first result names. */
interface Seen {
  readonly notebookId: string;
  /** The text of the last result. */
  readonly last: string;
}

const python = ({ notebookId }: Seen, code: string, more: object = {}): Calls => [
  ['run_python', { notebookId, code, ...more }],
];
const FIGURE = 'import matplotlib.pyplot as plt\nplt.plot(kept)\nplt.show()';
const TABLE =
  'import pandas as pd\nframe = pd.DataFrame({"n": kept, "square": [n * n for n in kept]})\nframe';

/** Each step uses names, ids or values of the steps before. */
const STEPS: readonly ((seen: Seen) => Calls)[] = [
  () => [['open_notebook', { title: 'Steps', cells: [{ cellId: 'numbers', code: 'numbers = [1, 2, 3]' }] }]],
  ({ notebookId }) => [['run_cells', { notebookId, cellIds: ['numbers'] }]],
  (seen) => python(seen, 'kept = numbers + [4]\nsum(kept)'),
  (seen) => python(seen, `kept.remove(${/\b10\b/.exec(seen.last)})`), // 10 is the sum, so this is an error
  (seen) => python(seen, seen.last.includes('ValueError') ? TABLE : 'no error was seen'),
  (seen) => python(seen, FIGURE),
  (seen) => [...python(seen, 'frame.square.sum()'), ...python(seen, 'frame.square.max()')],
  (seen) => python(seen, 'import time\ntime.sleep(600)', { timeoutS: 1 }),
  (seen) => [
    [
      'edit_cells',
      {
        notebookId: seen.notebookId,
        edits: [
          {
            type: 'create',
            code: seen.last.includes('timed_out') ? 'total = sum(numbers) * 7' : 'no limit was seen',
          },
        ],
      },
    ],
  ],
  (seen) => python(seen, 'total'),
];

test('an agent of the AI SDK does ten steps that build on each other, through an error, a figure, a table and a limit', async () => {
  const mcp = await createMCPClient({
    transport: {
      type: 'http',
      url: `${server.baseUrl}/mcp`,
      headers: { authorization: `Bearer ${OWNER.token}`, 'service-workspace-id': OWNER.workspaceId },
    },
  });
  try {
    const agent = new ToolLoopAgent({
      model: scriptedModel(),
      tools: await mcp.tools(),
      stopWhen: stepCountIs(STEPS.length + 1),
    });
    const { steps, text } = await agent.generate({ prompt: 'Work.' });
    assert.equal(text, 'The total is 42.');
    assert.equal(steps.length, STEPS.length + 1);
    const results = steps.map(({ toolResults }) => toolResults.map(({ output }) => Object(output) as Result));
    const structured = results.flat().map(({ structuredContent }) => structuredContent);
    assert.deepEqual(
      structured.map((content) => content.success ?? content.status),
      ['ready', true, true, false, true, true, true, true, false, true, true],
    );
    const [, , sum, error, table, figure, squares, largest, late] = structured;
    assert.equal(sum!.result, '10');
    assert.match(String(error!.stderr), /ValueError/);
    assert.match(JSON.stringify(table), /"rowCount":4/);
    assert.deepEqual([squares!.result, largest!.result].map(String).map(lastNumber), ['30', '16']);
    assert.equal(late!.status, 'timed_out');
    const shown = results[5]![0]!.content.filter(({ type }) => type === 'image');
    assert.deepEqual(
      shown.map(({ mimeType }) => mimeType),
      ['image/png'],
    );
    assert.equal(figure!.success, true);
  } finally {
    await mcp.close();
  }
});

/** A result of a tool of MCP. */
interface Result {
  readonly content: readonly { readonly type: string; readonly mimeType?: string }[];
  readonly structuredContent: Readonly<Record<string, unknown>>;
}

const lastNumber = (text: string) => /\d+(?=\D*$)/.exec(text)?.[0];

/** Returns a model that makes the calls of `STEPS`, one step after the other, and then reports the last result. */
function scriptedModel(): MockLanguageModelV3 {
  return new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const results = prompt.flatMap(({ role, content }) => (role === 'tool' ? [textsOf(content)] : []));
      const [notebookId = ''] = /nb_\w+/.exec(results[0] ?? '') ?? [];
      const last = results.at(-1) ?? '';
      const step = STEPS[results.length];
      const calls = step?.({ notebookId, last }) ?? [];
      return {
        content:
          step === undefined
            ? [{ type: 'text', text: `The total is ${/\b42\b/.exec(last)?.[0]}.` }]
            : calls.map(([toolName, input], i) => ({
                type: 'tool-call',
                toolCallId: `call-${results.length}-${i}`,
                toolName,
                input: JSON.stringify(input),
              })),
        finishReason: { unified: step === undefined ? 'stop' : 'tool-calls', raw: undefined },
        usage: {
          inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
          outputTokens: { total: 1, text: 1, reasoning: undefined },
        },
        warnings: [],
      };
    },
  });
}

/** Returns every text in the results of a step. */
function textsOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  return Object.values(value).map(textsOf).join('\n');
}
