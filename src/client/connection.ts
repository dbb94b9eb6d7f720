/** Sends the client's requests: one request in, a decoded response or a typed error out. It does not retry. */
import { ApiError, ConnectionError, unexpectedResponse } from './api-error.ts';

/** A value that is shown only when it is asked for. */
interface Revealable {
  reveal(): string;
}

export interface ClientOptions {
  /** The address of the server, without `/api/v3`. */
  readonly baseUrl: string;
  /** As text, or wrapped so that it is not printed by accident. */
  readonly accessToken?: string | Revealable | undefined;
  readonly workspaceId?: string | undefined;
  /** Sends the requests. Defaults to the global `fetch`, which reuses connections. */
  readonly fetch?: typeof fetch;
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface PostOptions extends RequestOptions {
  /** A request that is repeated with the same key and body within 24 hours takes effect once and gets the same response. */
  readonly idempotencyKey?: string | undefined;
}

/** The default wait, within the usual timeouts of proxies. */
export const DEFAULT_WAIT_S = 50;

export interface WaitOptions extends RequestOptions {
  /** How many seconds to wait for the end of a run: at most 300. Behind a proxy, less than its timeout. */
  readonly wait?: number | undefined;
}

export interface WriteOptions extends RequestOptions {
  /**
   * The entity tag of the state that was read. The call is rejected with `precondition_failed` when the record has changed since.
   */
  readonly ifMatch?: string | undefined;
}

export interface ReadOptions extends RequestOptions {
  /** The entity tag of the state that the caller has: `value` is then undefined if the record has not changed. */
  readonly ifNoneMatch?: string | undefined;
}

/** A record, with the entity tag that names this state of it. */
export interface Tagged<T> {
  readonly etag: string;
  /** Undefined when the caller already has this state. */
  readonly value: T | undefined;
}

/** A request whose answer has the type `Answer`. */
export interface OutgoingRequest<Answer = unknown> extends PostOptions, WriteOptions, ReadOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path, including `/api/v3`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Bytes that are sent as they are, in place of `body`. */
  readonly content?: Uint8Array | ReadableStream<Uint8Array> | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Never set: it carries the type of the answer. */
  readonly answer?: Answer;
}

export class Connection {
  readonly baseUrl: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: typeof fetch;

  /** Throws `TypeError` for an access token that cannot be one. */
  constructor({ baseUrl, accessToken, workspaceId, fetch: send = fetch }: ClientOptions) {
    this.baseUrl = baseUrl.replace(/\/+$/, '');
    const token = typeof accessToken === 'object' ? accessToken.reveal() : accessToken;
    if (token !== undefined && !canBeToken(token)) throw new TypeError(NO_TOKEN);
    this.#headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(workspaceId === undefined ? {} : { 'service-workspace-id': workspaceId }),
    };
    this.#fetch = send;
  }

  /**
   * Resolves with the decoded body, or undefined when it is empty. Rejects with `ApiError`, `ConnectionError` or the reason
   * of the abort.
   */
  async json<T>(request: OutgoingRequest<T>): Promise<T> {
    const response = await this.open(request);
    const text = await this.#read(request, () => response.text());
    return (text === '' ? undefined : this.#decoded(request, response, text)) as T;
  }

  /** Resolves with the decoded body and its entity tag. */
  async tagged<T>(request: OutgoingRequest<T>): Promise<Tagged<T>> {
    const response = await this.open(request);
    const text = await this.#read(request, () => response.text());
    const value = response.status === 304 ? undefined : (this.#decoded(request, response, text) as T);
    return { etag: response.headers.get('etag') ?? '', value };
  }

  /** Resolves with the body as bytes, and its media type. */
  async bytes(request: OutgoingRequest): Promise<{ contentType: string; bytes: Uint8Array }> {
    const response = await this.open(request);
    const bytes = new Uint8Array(await this.#read(request, () => response.arrayBuffer()));
    return { contentType: response.headers.get('content-type') ?? '', bytes };
  }

  /** Resolves with a 2xx or 304 response once its head has arrived. The caller reads or cancels the body. */
  async open(request: OutgoingRequest): Promise<Response> {
    const { method, body, content, signal, idempotencyKey, ifMatch, ifNoneMatch } = request;
    const url = this.baseUrl + request.path + queryOf(request.query);
    const response = await this.#read(request, () =>
      this.#fetch(url, {
        method,
        headers: {
          ...this.#headers,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
          ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
          ...(ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch }),
          ...request.headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        // A stream is sent while it is read: `duplex` is the standard's word for that.
        ...(content === undefined ? {} : { body: sendable(content), duplex: 'half' }),
        ...(signal === undefined ? {} : { signal }),
        // A redirect would turn a POST into a GET, or send a body that may be a credential to another server.
        redirect: 'manual',
      }),
    );
    if (response.ok || response.status === 304) return response;
    if (isRedirect(response)) {
      await response.body?.cancel();
      throw unexpectedResponse(response, url, redirectionOf(response));
    }
    const text = await this.#read(request, () => response.text());
    throw new ApiError(response.status, response.headers, parsed(text));
  }

  #decoded({ path }: OutgoingRequest, response: Response, text: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      throw unexpectedResponse(response, this.baseUrl + path, 'is not JSON');
    }
  }

  async #read<T>({ path, signal }: OutgoingRequest, step: () => Promise<T>): Promise<T> {
    try {
      return await step();
    } catch (error) {
      signal?.throwIfAborted();
      throw new ConnectionError(this.baseUrl + path, error);
    }
  }
}

/** The error message for a token that no header can carry. */
export const NO_TOKEN = 'The access token has characters that no token has, such as a space or a line break.';

/**
 * Returns whether a header can carry the token, of which `fetch` removes white space around it. For one that it cannot carry, `fetch`
 * throws an error that shows all of it.
 */
export function canBeToken(token: string): boolean {
  return /^[\x21-\x7e]*$/.test(token.trim());
}

/** Returns the content as `fetch` takes it. Throws `TypeError` for shared memory, which it does not take. */
function sendable(content: Uint8Array | ReadableStream<Uint8Array>) {
  if (!(content instanceof Uint8Array)) return content;
  if (!isUnshared(content)) throw new TypeError('Shared memory cannot be sent: copy it first.');
  return content;
}

function isUnshared(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer;
}

/** Browsers hide the status of a redirect that is not followed. */
function isRedirect({ status, type }: Response): boolean {
  return type === 'opaqueredirect' || (status >= 300 && status < 400);
}

function redirectionOf({ headers }: Response): string {
  const location = headers.get('location');
  return `redirects${location === null ? '' : ` to ${location}`}, which is not followed`;
}

function queryOf(query: OutgoingRequest['query'] = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value));
  return given.size === 0 ? '' : `?${given}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // a proxy sent it, so there is only the status
  }
}
