/** Sends the client's requests: one request in, a decoded response or a typed error out. */
import { eitherSignal, inTime } from './abort.ts';
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
  /**
   * After how many seconds a silent server counts as lost: never by default, and 60 in `Troupe`. A request that took longer is not
   * repeated either. An upload, and the body of a file that was opened, have no limit.
   */
  readonly timeoutS?: number | undefined;
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
  /** Bytes that are sent unchanged, in place of `body`. */
  readonly content?: Uint8Array | ReadableStream<Uint8Array> | undefined;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** Whether leaving interrupts the work that the request started, so that it is not repeated after a lost connection. */
  readonly endsWithConnection?: boolean;
  /** Never set at run time. The member carries the type of the answer. */
  readonly answer?: Answer;
}

export class Connection {
  readonly baseUrl: string;
  readonly retries: number;
  /** How long the server may be silent. */
  readonly patienceMs: number;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: typeof fetch;

  /** Throws `TypeError` for an access token that cannot be one. */
  constructor({
    baseUrl,
    accessToken,
    workspaceId,
    fetch: send = fetch,
    retries = 0,
    timeoutS = Infinity,
  }: ClientOptions) {
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
    this.patienceMs = timeoutS * 1000;
  }

  /**
   * Resolves with the decoded body, or undefined when it is empty. Rejects with `ApiError`, `ConnectionError` or the reason
   * of the abort.
   */
  async json<T>(request: OutgoingRequest<T>): Promise<T> {
    return (await this.tagged(request))?.value as T;
  }

  /** Resolves with the decoded body and its entity tag. */
  async tagged<T>(request: OutgoingRequest<T>): Promise<Tagged<T>> {
    return this.#repeated(request, async (response, body) => {
      const text = await body.text();
      const refuse = () => {
        throw unexpectedResponse(response, this.baseUrl + request.path, 'is not JSON');
      };
      const value = text ? (parsed(text, refuse) as T) : undefined;
      return { etag: response.headers.get('etag') ?? '', value };
    });
  }

  /** Resolves with the body as bytes, and its media type. */
  async bytes(request: OutgoingRequest): Promise<{ contentType: string; bytes: Uint8Array }> {
    return this.#repeated(request, async ({ headers }, body) => ({
      contentType: headers.get('content-type') ?? '',
      bytes: new Uint8Array(await body.arrayBuffer()),
    }));
  }

  /** Makes the attempts of a request and reads the response; all attempts of a POST have the same key. */
  async #repeated<T>(
    request: OutgoingRequest,
    decode: (response: Response, body: Blob) => Promise<T>,
  ): Promise<T> {
    const { retries } = this;
    const attempt = async (attempted: OutgoingRequest) => {
      const response = await this.open(attempted);
      return decode(response, await this.#bodyOf(attempted, response));
    };
    if (retries === 0) return attempt(request);
    const { method, path, signal, content, endsWithConnection } = request;
    const attempted =
      method === 'POST' ? { ...request, idempotencyKey: request.idempotencyKey ?? newKey() } : request;
    /** The first failure of an attempt that may have taken effect. */
    let unclear: unknown;
    const end = performance.now() + this.#patienceFor(request);
    try {
      return await withRetries(() => attempt(attempted), {
        // A stream can be sent once.
        retries: content instanceof ReadableStream ? 0 : retries,
        signal,
        isFinal: (error) => {
          const { isRefused, status } = Object(error);
          // A server may have died after it has stored the change of a request that is answered with 5xx.
          if (!isRefused && !(status < 500)) unclear ??= error;
          return (unclear && endsWithConnection) || performance.now() >= end;
        },
      });
    } catch (error) {
      const { status, code } = Object(error);
      if (unclear) {
        if (method === 'DELETE' && /_(found|closed)$/.test(code)) return undefined as T; // deleted by the first try
        if (endsWithConnection && error instanceof ConnectionError)
          throw new CodeInterrupted(this.baseUrl + path, error);
        // The repetition of a change may be refused because of the first attempt: whether that took effect is not known.
        if (/^P[AU]/.test(method) && status < 500) throw unclear;
      }
      throw error;
    }
  }

  /** Resolves with a 2xx or 304 response once its head has arrived. The caller reads or cancels the body. */
  async open(request: OutgoingRequest, patienceMs = this.#patienceFor(request)): Promise<Response> {
    const { method, path, body, content, signal, idempotencyKey, ifMatch, ifNoneMatch } = request;
    // URLs drop these segments, so the request would lead to another operation.
    if (/\/\.\.?(\/|$)/.test(path))
      throw new ApiError(404, new Headers(), { code: 'not_found', detail: `No path: ${path}` });
    const url = this.baseUrl + path + queryOf(request.query);
    const send = (silence: AbortSignal) =>
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
          body: content === undefined ? JSON.stringify(body) : (content as Uint8Array<ArrayBuffer>),
          // A stream is sent while it is read: `duplex` is the standard's word for that.
          duplex: content && 'half',
        }),
        signal: eitherSignal(silence, signal),
        // A redirect would turn a POST into a GET, or send a body that may be a credential to another server.
        redirect: 'manual',
      });
    const response = await this.#read(request, () => inTime(patienceMs, send));
    if (response.ok || response.status === 304) return response;
    if (isRedirect(response)) {
      await response.body?.cancel();
      throw unexpectedResponse(response, url, redirectionOf(response));
    }
    const text = await (await this.#bodyOf(request, response)).text();
    // A text that is not JSON comes from a proxy.
    throw new ApiError(
      response.status,
      response.headers,
      parsed(text, () => text),
    );
  }

  /** How long the server may be silent until the head of the response arrives. */
  #patienceFor({ content, query }: OutgoingRequest): number {
    // The time that an upload takes depends on its size.
    return content ? Infinity : this.patienceMs + Number(query?.wait ?? 0) * 1000;
  }

  #bodyOf(request: OutgoingRequest, response: Response): Promise<Blob> {
    return this.#read(request, async () => {
      const pieces: Uint8Array<ArrayBuffer>[] = [];
      for await (const piece of piecesOf(response, this.patienceMs)) pieces.push(piece);
      return new Blob(pieces);
    });
  }

  async #read<T>({ path, signal }: OutgoingRequest, step: () => Promise<T>): Promise<T> {
    try {
      return await step();
    } catch (error) {
      throw failureOf(error, this.baseUrl + path, signal);
    }
  }
}

/** Returns the error for a failure of a request. Throws the reason of the signal when it has aborted. */
export function failureOf(error: unknown, url: string, signal: AbortSignal | undefined): unknown {
  signal?.throwIfAborted();
  return error instanceof ApiError || error instanceof ConnectionError
    ? error
    : new ConnectionError(url, error);
}

/**
 * Yields the chunks of a body, and throws when the next one does not come in time. Not every browser can iterate over a stream. Leaving
 * the loop cancels the body.
 */
export async function* piecesOf({ body }: Response, silenceMs: number) {
  // In Chromium a 204 has an empty body.
  const reader = body?.getReader();
  try {
    for (;;) {
      const read = await inTime(silenceMs, async () => reader?.read());
      if (read?.value === undefined) return;
      yield read.value;
    }
  } finally {
    // Cancelling fails when the stream has failed, and then there is nothing to cancel.
    await reader?.cancel().catch(() => {});
  }
}

/** Returns a key that no other request has. `crypto.randomUUID` is missing in pages that came without TLS. */
export function newKey(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join('-');
}

/** The error message for a token that no header can carry. */
export const NO_TOKEN = 'The access token has an invalid character.';

/**
 * Returns whether a header can carry the token, of which `fetch` removes white space around it. For a token
 * that a header cannot carry, `fetch` would throw an error that shows the whole token.
 */
export function canBeToken(token: string): boolean {
  return /^[\x21-\x7e]*$/.test(token.trim());
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

function parsed(text: string, otherwise: () => unknown): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise();
  }
}
