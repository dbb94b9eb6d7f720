/**
 * Requests that the server makes to itself for a client, without a connection. They pass the same admission, checks, limits,
 * audit and forwarding to other workers as requests of clients. So MCP, which is another form of the API, has exactly the rights
 * and the rules of the API.
 */
import { AppError } from '#src/base/errors/errors.ts';
import { AdmittedRequest, type PreparedRoute } from '../edge/admission.ts';
import { HttpExchange } from '../edge/exchange.ts';
import type { HttpContext } from '../edge/http-context.ts';
import { requestIdFor } from '../edge/request-head.ts';
import { PeerRequest } from '../peer/peer-request.ts';
import { problemReply } from '../reply/problem.ts';
import { InnerResponse } from './inner-response.ts';

/** The client in whose name requests are made. */
export interface InnerCaller {
  /** The client's IP address, for the audit. */
  readonly address: string;
  /** The headers that name the caller, in lower case. Every request gets these headers. */
  readonly headers: Readonly<Record<string, string>>;
}

interface InnerRoute {
  readonly prepared: PreparedRoute;
  readonly pattern: RegExp;
}

/** Makes requests to the routes of the server. `attach` sets the routes. */
export class InnerRequests {
  readonly #routes = new Map<string, InnerRoute[]>();
  #context: HttpContext | undefined;

  /** Sets the routes. Called once, when the server has mounted them. */
  attach(routes: Iterable<PreparedRoute>, context: HttpContext): void {
    this.#context = context;
    for (const prepared of routes) {
      const { method, path } = prepared.route;
      const pattern = new RegExp(`^${path.replace(/:\w+\*$/, '(.*)').replace(/:\w+/g, '([^/]+)')}$`);
      const key = keyOf(method, path);
      this.#routes.set(key, [...(this.#routes.get(key) ?? []), { prepared, pattern }]);
    }
  }

  /**
   * Returns a `fetch` that carries out the requests of this caller in this process. The function uses only the path and the query
   * of an address. Bodies are text or bytes. When the signal aborts, the function rejects like `fetch`, and for the handler its
   * client has left.
   */
  fetchFor(caller: InnerCaller): typeof fetch {
    return (input, init = {}) =>
      new Promise<Response>((resolve, reject) => {
        const { signal } = init;
        signal?.throwIfAborted();
        const { pathname, search } = new URL(String(input));
        const method = init.method ?? 'GET';
        if (this.#context === undefined) {
          reject(new TypeError('The server has no routes yet.'));
          return;
        }
        const found = this.#find(method, pathname);
        if (found === undefined) {
          resolve(noSuchOperation(pathname));
          return;
        }
        const body = bodyOf(init.body);
        const leave = () => response.abort(signal?.reason);
        const response = new InnerResponse({
          body,
          address: caller.address,
          settle: (settled) => {
            if (settled instanceof Error) reject(signal?.aborted === true ? signal.reason : settled);
            else resolve(settled);
          },
          over: () => signal?.removeEventListener('abort', leave),
        });
        signal?.addEventListener('abort', leave, { once: true });
        const headers = headersOf(caller, init.headers, method, body);
        const req = new PeerRequest({
          method: method.toLowerCase(),
          url: pathname,
          query: search.slice(1),
          params: found.params,
          headers,
        });
        const requestId = requestIdFor(req.getHeader('x-request-id'));
        const request = new AdmittedRequest({ requestId, allowedOrigin: undefined }, false);
        new HttpExchange(found.prepared, this.#context, response, req, request).receive(req);
      });
  }

  #find(method: string, path: string): { prepared: PreparedRoute; params: readonly string[] } | undefined {
    for (const { prepared, pattern } of this.#routes.get(keyOf(method, path)) ?? []) {
      const match = pattern.exec(path);
      if (match !== null) return { prepared, params: match.slice(1) };
    }
    return undefined;
  }
}

/** Returns the response to a request that matches no operation. */
function noSuchOperation(instance: string): Response {
  const error = new AppError('not_found', 'No resource has this name.');
  const { bytes, contentType } = problemReply(error, { requestId: requestIdFor(''), instance });
  return new Response(bytes, { status: error.status, headers: { 'content-type': contentType } });
}

/**
 * Returns a key that matches few routes: the method and the beginning of the path, which is never a
 * parameter.
 */
function keyOf(method: string, path: string): string {
  const [, first = '', second = '', third = ''] = path.split('/', 4);
  return `${method} ${first}/${second}/${third}`;
}

function bodyOf(body: RequestInit['body']): Buffer {
  if (body === null || body === undefined) return Buffer.alloc(0);
  if (typeof body === 'string') return Buffer.from(body);
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  throw new TypeError('The body of such a request is text or bytes.');
}

/** Returns the headers as a list in which names and values alternate, as in a forwarded request. */
function headersOf(
  { headers }: InnerCaller,
  own: RequestInit['headers'],
  method: string,
  body: Buffer,
): string[] {
  const all = Object.entries(headers).flat();
  for (const [name, value] of Object.entries(Object(own) as Record<string, string>)) {
    all.push(name.toLowerCase(), value);
  }
  if (body.byteLength > 0 || method !== 'GET') all.push('content-length', String(body.byteLength));
  return all;
}
