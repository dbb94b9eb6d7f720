/**
 * The endpoint of MCP: it turns requests of clients into messages of the protocol. The first request loads the
 * implementation of the protocol.
 */
import { randomUUID } from 'node:crypto';
import type { DatasourceQueries } from '#src/agent/tools/datasource-tools.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import type { Log } from '#src/base/log/log.ts';
import type { TraceContext } from '#src/base/tracing/trace-context.ts';
import { createClient } from '#src/contract/client/client.ts';
import { Connection } from '#src/contract/client/connection.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';
import { CallsInFlight } from './calls-in-flight.ts';
import type { Protocol } from './protocol.ts';

/** One request of a client, whose caller is known. */
export interface McpHttpRequest {
  readonly principal: Principal;
  /** Sends requests to the API in the name of the caller. */
  readonly fetch: typeof fetch;
  /** The headers that the protocol reads. */
  readonly headers: Readonly<Record<string, string>>;
  /** The message, or several, as parsed JSON. */
  readonly body: unknown;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
  readonly trace: TraceContext | undefined;
}

const SESSION_HEADER = 'mcp-session-id';
/**
 * A host name to stand for this server in addresses. It is never resolved: the protocol ignores it, and requests to
 * the API stay within the process.
 */
const HERE = 'http://troupe.invalid';

export class McpEndpoint {
  readonly #datasources: DatasourceQueries;
  readonly #log: Log;
  readonly #calls: CallsInFlight;
  #protocol: Promise<Protocol> | undefined;

  constructor(cluster: Pick<Cluster, 'askOthers' | 'onAsked'>, datasources: DatasourceQueries, log: Log) {
    this.#datasources = datasources;
    this.#log = log;
    this.#calls = new CallsInFlight(cluster);
  }

  /** Resolves with the response to one request. */
  async serve({ principal, fetch: send, headers, body, signal, trace }: McpHttpRequest): Promise<Response> {
    const protocol = await this.#load();
    const given = Object.entries(headers).filter(([, value]) => value !== '');
    const request = new Request(`${HERE}/mcp`, { method: 'POST', headers: given, signal });
    const clientId = headers[SESSION_HEADER] ?? '';
    const options = { baseUrl: HERE, fetch: send };
    const [client, connection] = [createClient(options), new Connection(options)];
    const response = await protocol.serve(request, body, { principal, client, connection, clientId, trace });
    if (Object(body).method !== 'initialize' || response.status !== 200) return response;
    // The session id only distinguishes the requests of clients that use the same token. The server stores
    // nothing about a session.
    const more = new Headers(response.headers);
    more.set(SESSION_HEADER, randomUUID());
    return new Response(response.body, { status: response.status, headers: more });
  }

  #load(): Promise<Protocol> {
    this.#protocol ??= import('./protocol.ts').then(
      ({ Protocol }) => new Protocol(this.#calls, this.#datasources, this.#log),
    );
    return this.#protocol;
  }
}
