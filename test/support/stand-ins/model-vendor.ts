/**
 * Servers of models that answer as a test specifies, byte by byte. Dialogues are easier to write
 * with `scripted-model.ts`.
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ModelQuestion } from '#src/agent/models/model-call.ts';

type Answering = (body: unknown, response: ServerResponse) => void;

export async function startVendor(answer: Answering): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    answer(JSON.parse(Buffer.concat(parts).toString()), response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A request to a server of chat completions. Its key must not be shown to others. */
export function questionTo(baseUrl: string): ModelQuestion {
  return {
    target: { provider: 'openai-compatible', name: 'm', baseUrl, apiKey: 'k' },
    id: 'openai-compatible/m',
    system: '',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello.' }] }],
    tools: [],
    maxOutputTokens: undefined,
    silenceMs: 10_000,
    signal: new AbortController().signal,
    onText: () => {},
    onReasoning: () => {},
  };
}
