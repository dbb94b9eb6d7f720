/**
 * A stand-in that speaks the protocols of all vendors and keeps each request's body as it came. A test says how the next requests are
 * answered, in words that are the same for all protocols.
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Owner } from '../server-fixture.ts';

/** How one request is answered: with text, with a call of a tool, with a status, or never. */
export type VendorAnswer =
  | { readonly text: string }
  | { readonly call: readonly [name: string, input: object] }
  | { readonly refuse: number }
  | 'silence';

export interface VendorRequest {
  readonly path: string;
  /** The body as it was sent. */
  readonly body: string;
}

export interface VendorStandIn {
  /** Includes `/v1`. */
  readonly url: string;
  readonly requests: readonly VendorRequest[];
  /** Answers the next requests, one after another. */
  script(...answers: VendorAnswer[]): void;
  /** Resolves with the request of this number, counted from 0, when it has arrived. */
  asked(number: number): Promise<VendorRequest>;
}

/** A model of each vendor, by the path at which the vendor is asked. */
export const MODELS: Readonly<Record<string, string>> = {
  'anthropic/claude-sonnet-4-5': '/v1/messages',
  'openai/gpt-5': '/v1/responses',
  'openai-compatible/anything': '/v1/chat/completions',
};

type Writing = (answer: Exclude<VendorAnswer, 'silence' | { refuse: number }>) => object[];

const usage = { input_tokens: 1, output_tokens: 1 };

const WRITERS: Readonly<Record<string, Writing>> = {
  '/v1/messages': (answer) => [
    {
      type: 'message_start',
      message: { id: 'm', type: 'message', role: 'assistant', content: [], model: 'm', usage },
    },
    ...('text' in answer
      ? [
          { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
          { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: answer.text } },
        ]
      : [
          {
            type: 'content_block_start',
            index: 0,
            content_block: { type: 'tool_use', id: 'call_1', name: answer.call[0], input: {} },
          },
          {
            type: 'content_block_delta',
            index: 0,
            delta: { type: 'input_json_delta', partial_json: JSON.stringify(answer.call[1]) },
          },
        ]),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'text' in answer ? 'end_turn' : 'tool_use' }, usage },
    { type: 'message_stop' },
  ],
  '/v1/responses': (answer) => {
    const item =
      'text' in answer
        ? { type: 'message', id: 'item_1' }
        : {
            ...{ type: 'function_call', id: 'item_1', call_id: 'call_1', status: 'completed' },
            ...{ name: answer.call[0], arguments: JSON.stringify(answer.call[1]) },
          };
    return [
      { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } },
      { type: 'response.output_item.added', output_index: 0, item },
      ...('text' in answer
        ? [{ type: 'response.output_text.delta', item_id: 'item_1', delta: answer.text }]
        : []),
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { usage } },
    ];
  },
  '/v1/chat/completions': (answer) => {
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' },
      choices: [{ index: 0, delta, finish_reason }],
    });
    if ('text' in answer) return [chunk({ content: answer.text }), chunk({}, 'stop')];
    const [name, input] = answer.call;
    const call = {
      index: 0,
      id: 'call_1',
      type: 'function',
      function: { name, arguments: JSON.stringify(input) },
    };
    return [chunk({ tool_calls: [call] }), chunk({}, 'tool_calls')];
  },
};

/** Starts a stand-in, which ends with the owner. */
export async function startVendorStandIn(owner: Owner): Promise<VendorStandIn> {
  const requests: VendorRequest[] = [];
  const script: VendorAnswer[] = [];
  const waits = new Map<number, (request: VendorRequest) => void>();
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const kept = { path: request.url ?? '', body: Buffer.concat(parts).toString() };
    const number = requests.push(kept) - 1;
    reply(response, kept.path, script.shift() ?? { refuse: 400 });
    waits.get(number)?.(kept);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  owner.after(async () => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    script: (...answers) => void script.push(...answers),
    asked: (number) =>
      new Promise((resolve) => {
        const known = requests[number];
        if (known === undefined) waits.set(number, resolve);
        else resolve(known);
      }),
  };
}

function reply(response: ServerResponse, path: string, answer: VendorAnswer): void {
  if (answer === 'silence') return;
  const writer = WRITERS[path];
  if ('refuse' in answer || writer === undefined) {
    response.writeHead('refuse' in answer ? answer.refuse : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: 'no', type: 'invalid_request_error' } }));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of writer(answer)) {
    const name = 'type' in event ? `event: ${String(event.type)}\n` : '';
    response.write(`${name}data: ${JSON.stringify(event)}\n\n`);
  }
  response.end(path === '/v1/chat/completions' ? 'data: [DONE]\n\n' : '');
}
