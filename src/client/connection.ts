/** How the client speaks HTTP: one request in, a decoded answer or a typed failure out. No retries. */
import type { Secret } from '#src/core/secret.ts';
import { ApiError, ConnectionError } from './api-error.ts';

export interface ClientOptions {
  /** Of the server, without `/api/v3`. */
  readonly baseUrl: string;
  readonly accessToken?: string | Secret | undefined;
  readonly workspaceId?: string | undefined;
  /** What sends the requests; the global `fetch`, which keeps connections open, when absent. */
  readonly fetch?: typeof fetch;
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface PostOptions extends RequestOptions {
  /** The same key and body within 24 hours answer the same and do nothing twice. */
  readonly idempotencyKey?: string | undefined;
}

export interface OutgoingRequest extends PostOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `/api/v3`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export class Connection {
  readonly baseUrl: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: typeof fetch;

  constructor({ baseUrl, accessToken, workspaceId, fetch: send = fetch }: ClientOptions) {
    this.baseUrl = baseUrl.replace(/\/+$/, '');
    const token = typeof accessToken === 'object' ? accessToken.reveal() : accessToken;
    this.#headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(workspaceId === undefined ? {} : { 'service-workspace-id': workspaceId }),
    };
    this.#fetch = send;
  }

  /** The decoded body; `undefined` for an empty one. Rejects with `ApiError`, `ConnectionError` or the abort's reason. */
  async json<T>(request: OutgoingRequest): Promise<T> {
    const response = await this.open(request);
    const text = await this.#read(request, () => response.text());
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  /** The body as it is, with its media type. */
  async bytes(request: OutgoingRequest): Promise<{ contentType: string; bytes: Uint8Array }> {
    const response = await this.open(request);
    const bytes = new Uint8Array(await this.#read(request, () => response.arrayBuffer()));
    return { contentType: response.headers.get('content-type') ?? '', bytes };
  }

  /** The answer once its head is there; it is 2xx. The caller reads or cancels the body. */
  async open(request: OutgoingRequest): Promise<Response> {
    const { method, body, signal, idempotencyKey } = request;
    const url = this.baseUrl + request.path + queryOf(request.query);
    const response = await this.#read(request, () =>
      this.#fetch(url, {
        method,
        headers: {
          ...this.#headers,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
          ...request.headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    if (response.ok) return response;
    const text = await this.#read(request, () => response.text());
    throw new ApiError(response.status, response.headers, parsed(text));
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

/** A path whose inserted parts are percent-encoded. */
export function path(parts: TemplateStringsArray, ...inserted: readonly string[]): string {
  return parts.map((part, i) => (i === 0 ? '' : encodeURIComponent(inserted[i - 1]!)) + part).join('');
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
    return text; // not an answer of ours; the status says enough
  }
}
