/** Sends the client's requests: one request in, a decoded response or a typed error out. */
import { ApiError, CodeInterrupted, ConnectionError, unexpectedResponse } from './api-error.ts';
import { withRetries } from './retry.ts';

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
  /**
   * How often a request is repeated at most after a lost connection, 408, 429, 5xx or `idempotency_in_progress`: 0 by default. Above 0
   * every POST has an `Idempotency-Key`, so that it takes effect once.
   */
  readonly retries?: number | undefined;
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
  /** The values of a list are separated by commas, as texts of arrays are. */
  readonly query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Bytes that are sent as they are, in place of `body`. */
  readonly content?: Uint8Array | ReadableStream<Uint8Array> | undefined;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** Whether leaving interrupts the work that the request started, so that it is not repeated after a lost connection. */
  readonly endsWithConnection?: boolean;
  /** Never set: it carries the type of the answer. */
  readonly answer?: Answer;
}

export class Connection {
  readonly baseUrl: string;
  readonly retries: number;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: typeof fetch;

  /** Throws `TypeError` for an access token that cannot be one. */
  constructor({ baseUrl, accessToken, workspaceId, fetch: send = fetch, retries = 0 }: ClientOptions) {
    this.baseUrl = baseUrl.replace(/(?<!\/)\/+$/, '');
    const token = typeof accessToken === 'object' ? accessToken.reveal() : accessToken;
    if (token !== undefined && !canBeToken(token)) throw new TypeError(NO_TOKEN);
    this.#headers = present({
      authorization: token === undefined ? token : `Bearer ${token}`,
      'service-workspace-id': workspaceId,
    });
    // Browsers refuse a `fetch` that is called as the method of another object.
    this.#fetch = (input, init) => send(input, init);
    this.retries = retries;
  }

  /**
   * Resolves with the decoded body, or undefined when it is empty. Rejects with `ApiError`, `ConnectionError` or the reason
   * of the abort.
   */
  async json<T>(request: OutgoingRequest<T>): Promise<T> {
    return this.#repeated(request, async (response) => {
      const text = await response.text();
      return (text === '' ? undefined : this.#decoded(request, response, text)) as T;
    });
  }

  /** Resolves with the decoded body and its entity tag. */
  async tagged<T>(request: OutgoingRequest<T>): Promise<Tagged<T>> {
    return this.#repeated(request, async (response) => {
      const text = await response.text();
      const value = response.status === 304 ? undefined : (this.#decoded(request, response, text) as T);
      return { etag: response.headers.get('etag') ?? '', value };
    });
  }

  /** Resolves with the body as bytes, and its media type. */
  async bytes(request: OutgoingRequest): Promise<{ contentType: string; bytes: Uint8Array }> {
    return this.#repeated(request, async (response) => ({
      contentType: response.headers.get('content-type') ?? '',
      bytes: new Uint8Array(await response.arrayBuffer()),
    }));
  }

  /** Makes the attempts of a request and reads the response; all attempts of a POST have the same key. */
  async #repeated<T>(request: OutgoingRequest, readResponse: (response: Response) => Promise<T>): Promise<T> {
    const { retries } = this;
    const attempt = async (attempted: OutgoingRequest) => {
      const response = await this.open(attempted);
      return this.#read(attempted, () => readResponse(response));
    };
    if (retries === 0) return attempt(request);
    const { method, path, signal, ifMatch, content, endsWithConnection } = request;
    const isOnlyOnce = ifMatch !== undefined || endsWithConnection === true;
    const attempted =
      method === 'POST' ? { ...request, idempotencyKey: request.idempotencyKey ?? newKey() } : request;
    /** Whether an attempt may have taken effect without an answer. */
    let isUnclear = false;
    try {
      return await withRetries(() => attempt(attempted), {
        // A stream can be sent once.
        retries: content instanceof ReadableStream ? 0 : retries,
        signal,
        isFinal: (error) => {
          isUnclear ||= error instanceof ConnectionError && !error.isRefused;
          // The entity tag would be found to have changed, by the first attempt.
          return isUnclear && isOnlyOnce;
        },
      });
    } catch (error) {
      if (method === 'DELETE' && isUnclear && error instanceof ApiError && error.status === 404)
        return undefined as T; // the first attempt has deleted it
      if (endsWithConnection === true && isUnclear && error instanceof ConnectionError)
        throw new CodeInterrupted(this.baseUrl + path, error);
      throw error;
    }
  }

  /** Resolves with a 2xx or 304 response once its head has arrived. The caller reads or cancels the body. */
  async open(request: OutgoingRequest): Promise<Response> {
    const { method, path, body, content, signal, idempotencyKey, ifMatch, ifNoneMatch } = request;
    // URLs drop these segments, so the request would lead to another operation.
    if (/\/\.\.?(\/|$)/.test(path))
      throw new ApiError(404, new Headers(), { code: 'not_found', detail: `No path: ${path}` });
    const url = this.baseUrl + path + queryOf(request.query);
    const response = await this.#read(request, () =>
      this.#fetch(url, {
        method,
        headers: present({
          ...this.#headers,
          'content-type': body === undefined ? body : 'application/json',
          'idempotency-key': idempotencyKey,
          'if-match': ifMatch,
          'if-none-match': ifNoneMatch,
          ...request.headers,
        }),
        ...present({
          // JSON.stringify(undefined) is undefined.
          body: content === undefined ? JSON.stringify(body) : sendable(content),
          // A stream is sent while it is read: `duplex` is the standard's word for that.
          duplex: content && 'half',
          signal,
        }),
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
      if (error instanceof ApiError) throw error;
      throw new ConnectionError(this.baseUrl + path, error);
    }
  }
}

/** Returns a key that no other request has. `crypto.randomUUID` is missing in pages that came without TLS. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}

/** The error message for a token that no header can carry. */
export const NO_TOKEN = 'The access token has an invalid character.';

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
  if (!isUnshared(content)) throw new TypeError('Copy shared memory first.');
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

/** The members of `T`, each of which may be undefined. */
type Partially<T> = { readonly [Name in keyof T]: T[Name] | undefined };

/** Returns the members whose value is not undefined. */
export function present<T extends object>(members: Partially<T>): Partial<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function queryOf(query: OutgoingRequest['query'] = {}): string {
  const given = new URLSearchParams(present(query) as Record<string, string>).toString();
  return given && `?${given}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // a proxy sent it, so there is only the status
  }
}
