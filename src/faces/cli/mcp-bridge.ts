/**
 * Carries messages of the Model Context Protocol between a program, which uses standard input and output, and the endpoint of a
 * server. The bridge reads as little of a message as possible, because the contents concern only the program and the server.
 */
import { EventParser } from '#src/contract/client/event-parser.ts';
import type { ServerAccess } from './access.ts';

/** The members of a JSON-RPC message that the bridge reads. */
interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** Methods whose parameter is repeated in a header. */
const NAMED: Readonly<Record<string, 'name' | 'uri'>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
};
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const PARSE_ERROR = -32700;
const NO_ANSWER = -32000;

export class McpBridge {
  readonly #access: ServerAccess;
  readonly #write: (line: string) => void;
  /** Requests without an answer so far, by their ids as JSON, because the ids "1" and 1 differ. */
  readonly #open = new Map<string, AbortController>();
  /** The version of the protocol on which program and server have agreed. Newer programs name the version in each request. */
  #version: string | undefined;
  #clientId: string | undefined;

  /** `write` takes one message, without a line end. */
  constructor(access: ServerAccess, write: (line: string) => void) {
    this.#access = access;
    this.#write = write;
  }

  /** Carries one message to the server, and its answers back. Resolves after the last answer. Never rejects. */
  async carry(line: string): Promise<void> {
    let message: Message;
    try {
      message = Object(JSON.parse(line));
    } catch {
      this.#fail(null, PARSE_ERROR, 'This line is not JSON.');
      return;
    }
    const { id, method, params } = message;
    if (method === 'notifications/cancelled') {
      // Ending the request tells the server that it was cancelled.
      this.#open.get(JSON.stringify(params?.requestId))?.abort();
      return;
    }
    const key = JSON.stringify(id);
    const abort = new AbortController();
    if (id !== undefined) this.#open.set(key, abort);
    try {
      await this.#send(message, line, abort.signal);
    } catch (error) {
      if (!abort.signal.aborted && id !== undefined)
        this.#fail(id, NO_ANSWER, `No answer from ${this.#access.baseUrl}: ${reasonOf(error)}.`);
    } finally {
      this.#open.delete(key);
    }
  }

  /** Ends the requests that have no answer yet, because the program has left. */
  end(): void {
    for (const request of this.#open.values()) request.abort();
  }

  async #send(message: Message, line: string, signal: AbortSignal): Promise<void> {
    const response = await fetch(`${this.#access.baseUrl.replace(/(?<!\/)\/+$/, '')}/mcp`, {
      method: 'POST',
      headers: this.#headersOf(message),
      body: line,
      signal,
      redirect: 'manual', // the request has a credential, which must reach no other server
    });
    const contentType = response.headers.get('content-type') ?? '';
    if (message.method === 'initialize') this.#clientId = response.headers.get('mcp-session-id') ?? undefined;
    if (contentType.startsWith('text/event-stream') && response.body !== null) {
      const parser = new EventParser();
      for await (const bytes of response.body) {
        for (const { data } of parser.push(bytes)) if (data !== '') this.#answer(message, data);
      }
      return;
    }
    const text = await response.text();
    if (contentType.startsWith('application/json') && text !== '') this.#answer(message, text);
    else if (!response.ok && message.id !== undefined)
      this.#fail(message.id, NO_ANSWER, problemOf(text) ?? `The server answered ${response.status}.`);
  }

  #headersOf({ method, params }: Message): Record<string, string> {
    const { accessToken, workspaceId } = this.#access;
    const meta = Object(params?._meta) as Readonly<Record<string, unknown>>;
    const named = typeof method === 'string' ? NAMED[method] : undefined;
    const name = named === undefined ? undefined : params?.[named];
    const ofRequest = typeof meta[VERSION_KEY] === 'string' ? meta[VERSION_KEY] : undefined;
    const version = ofRequest ?? this.#version;
    return {
      authorization: `Bearer ${accessToken.reveal()}`,
      ...(workspaceId === undefined ? {} : { 'service-workspace-id': workspaceId }),
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(version === undefined ? {} : { 'mcp-protocol-version': version }),
      ...(ofRequest === undefined || typeof method !== 'string' ? {} : { 'mcp-method': method }),
      ...(ofRequest === undefined || typeof name !== 'string' ? {} : { 'mcp-name': headerText(name) }),
      ...(this.#clientId === undefined ? {} : { 'mcp-session-id': this.#clientId }),
    };
  }

  /** Passes on a message of the server, as one line. */
  #answer({ method }: Message, text: string): void {
    const answer: unknown = JSON.parse(text);
    if (method === 'initialize') {
      const version: unknown = Object(Object(answer).result).protocolVersion;
      if (typeof version === 'string') this.#version = version;
    }
    this.#write(JSON.stringify(answer));
  }

  #fail(id: unknown, code: number, message: string): void {
    this.#write(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }));
  }
}

/** Returns a name in the form of a header: the protocol encodes names that are not printable ASCII. */
function headerText(name: string): string {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(name) && !name.startsWith('=?base64?')) return name;
  return `=?base64?${Buffer.from(name).toString('base64')}?=`;
}

/** Returns the description of a problem document; undefined for anything else. */
function problemOf(text: string): string | undefined {
  try {
    const { code, detail }: { code?: unknown; detail?: unknown } = Object(JSON.parse(text));
    return typeof detail === 'string' ? `${String(code)}: ${detail}` : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the message of the innermost cause of `fetch failed`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : reasonOf(error.cause);
}
