/**
 * A model server that a test controls byte by byte. It speaks OpenAI chat completions over a socket, and breaks off, hangs
 * or sends nonsense when the test says so.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Owner } from '../server-fixture.ts';

/** One message of a request. */
export interface ChatMessage {
  readonly role: string;
  readonly content: unknown;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
}

/** The body of a request. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly { readonly function: { readonly name: string; readonly parameters: unknown } }[];
}

const USAGE = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };

/** One request, and its answer, which is sent piece by piece. */
export class Exchange {
  readonly body: ChatRequest;
  readonly headers: IncomingHttpHeaders;
  /** Resolves when the connection has ended, with whether the answer had been sent completely. */
  readonly over: Promise<'whole' | 'cut'>;
  readonly #response: ServerResponse;
  #isOpen = false;

  constructor(body: ChatRequest, headers: IncomingHttpHeaders, response: ServerResponse) {
    this.body = body;
    this.headers = headers;
    this.#response = response;
    this.over = once(response, 'close').then(() => (response.writableFinished ? 'whole' : 'cut'));
  }

  /** The content of the last message. */
  get asked(): string {
    return String(this.body.messages.at(-1)?.content);
  }

  text(...pieces: string[]): this {
    for (const content of pieces) this.chunk({ content });
    return this;
  }

  reasoning(text: string): this {
    return this.chunk({ reasoning_content: text });
  }

  calls(...calls: readonly (readonly [name: string, input: unknown])[]): this {
    calls.forEach(([name, input], index) => {
      const args = typeof input === 'string' ? input : JSON.stringify(input);
      const id = `call_${this.body.messages.length}_${index}`;
      const half = Math.ceil(args.length / 2);
      this.chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] });
      for (const part of [args.slice(0, half), args.slice(half)]) {
        this.chunk({ tool_calls: [{ index, function: { arguments: part } }] });
      }
    });
    return this;
  }

  chunk(delta: object): this {
    return this.raw(`data: ${JSON.stringify(envelope([{ index: 0, delta, finish_reason: null }]))}\n\n`);
  }

  /** Sends any bytes of an event stream. */
  raw(bytes: string): this {
    if (!this.#isOpen) this.#response.writeHead(200, { 'content-type': 'text/event-stream' });
    this.#isOpen = true;
    this.#response.write(bytes);
    return this;
  }

  /** Names the tokens of the answer, without ending it. */
  usage(usage: object = USAGE): this {
    return this.raw(`data: ${JSON.stringify({ ...envelope([]), usage })}\n\n`);
  }

  /** Ends the answer properly. With `usage` null it names no tokens. */
  end(
    finish: 'stop' | 'tool_calls' | 'length' | 'content_filter' = 'stop',
    usage: object | null = USAGE,
  ): void {
    this.raw(`data: ${JSON.stringify(envelope([{ index: 0, delta: {}, finish_reason: finish }]))}\n\n`);
    if (usage !== null) this.usage(usage);
    this.raw('data: [DONE]\n\n');
    this.#response.end();
  }

  /** Ends the stream without the end of the answer. */
  stop(): void {
    this.#response.end();
  }

  /** Cuts the connection. */
  cut(): void {
    this.#response.destroy();
  }

  /** Sends an error status instead of a stream. */
  refuse(status: number, body: unknown = {}, headers: Record<string, string> = {}): void {
    this.#response.writeHead(status, { 'content-type': 'application/json', ...headers });
    this.#response.end(typeof body === 'string' ? body : JSON.stringify(body));
  }
}

function envelope(choices: readonly object[]) {
  return { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices };
}

/** Answers one request. */
export type Behaviour = (exchange: Exchange) => void;

/** The running server. */
export interface ScriptedModel {
  /** Includes `/v1`. */
  readonly url: string;
  readonly exchanges: readonly Exchange[];
  /** Answers the next requests with these behaviours, one after another. A request beyond them is an error. */
  script(...behaviours: Behaviour[]): void;
  /** Answers every request for which there is no script. */
  always(behaviour: Behaviour): void;
  /** Resolves with the request of this number, counted from 0, when it has arrived. */
  asked(number: number): Promise<Exchange>;
}

/** Starts a server, which ends with the owner. */
export async function startScriptedModel(owner: Owner): Promise<ScriptedModel> {
  const exchanges: Exchange[] = [];
  const script: Behaviour[] = [];
  let usual: Behaviour | undefined;
  const waits: { readonly number: number; readonly resolve: (exchange: Exchange) => void }[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const exchange = new Exchange(
      JSON.parse(Buffer.concat(parts).toString()) as ChatRequest,
      request.headers,
      response,
    );
    const number = exchanges.push(exchange) - 1;
    const behaviour = script.shift() ?? usual;
    if (behaviour === undefined) exchange.refuse(400, { error: { message: 'the script is over' } });
    else behaviour(exchange);
    for (const wait of waits) if (wait.number === number) wait.resolve(exchange);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  owner.after(async () => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    exchanges,
    script: (...behaviours) => void script.push(...behaviours),
    always: (behaviour) => {
      usual = behaviour;
    },
    asked: (number) => {
      const known = exchanges[number];
      return known === undefined
        ? new Promise((resolve) => waits.push({ number, resolve }))
        : Promise.resolve(known);
    },
  };
}
