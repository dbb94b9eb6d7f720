/** HTTP requests over a checked route: an agent that connects to that server only, and one call at a time. */

import type { Agent } from 'node:http';
import { request as httpRequest, Agent as PlainAgent } from 'node:http';
import { request as httpsRequest, Agent as TlsAgent } from 'node:https';
import { isIP, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { parseHost } from '#src/base/net/ip-address.ts';
import type { EgressRoute } from '../../egress/egress-route.ts';
import type { TlsOptions } from '../../egress/tls-mode.ts';
import { codeOf, DatasourceFailure } from '../../failure.ts';
import { type PageOptions, parsePage } from './page-json.ts';

/** A connection as it was stored, with the way to its server: the agent that reaches it, and its origin. */
export type Reached<Connection> = Connection & { readonly agent: Agent; readonly origin: string };

interface Wanted {
  readonly host?: string | null;
  readonly port?: number | string | null;
}

/** Returns an agent for a route. Connecting to any other host or port, as for a redirect, fails with `not_allowed`. */
export function agentFor(route: EgressRoute, tls: TlsOptions | false): PlainAgent | TlsAgent {
  const agent = tls === false ? new PlainAgent({ keepAlive: true }) : new TlsAgent({ keepAlive: true });
  const createConnection = (wanted: Wanted) => {
    if (!leadsTo(route, wanted)) return new Socket().destroy(new DatasourceFailure('not_allowed'));
    const socket = route.connect();
    if (tls === false) return socket;
    const servername = isIP(route.host) === 0 ? route.host : '';
    return connectTls({ ...tls, socket, servername, host: route.host, ALPNProtocols: ['http/1.1'] });
  };
  return Object.assign(agent, { createConnection });
}

function leadsTo(route: EgressRoute, { host, port }: Wanted): boolean {
  const wanted = parseHost(host ?? '');
  const name =
    wanted.kind === 'name' ? wanted.name : wanted.kind === 'address' ? wanted.address.text : undefined;
  return name === route.host && Number(port) === route.port;
}

/** One HTTP request. */
export interface HttpCall extends PageOptions {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** The route determines scheme, host and port. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** The response to a request. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Parsed JSON; `undefined` when the body is not JSON. */
  readonly body: unknown;
}

/** Most bytes of a response, before and after it is unzipped. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
const unzip = promisify(gunzip);

/** Sends one request and returns the response; redirects are not followed. Rejects with socket errors and on abort. */
export async function callHttp(
  agent: PlainAgent | TlsAgent,
  { method, url, headers, body, signal, ...page }: HttpCall,
): Promise<HttpAnswer> {
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const { status, answerHeaders, bytes } = await new Promise<{
    status: number;
    answerHeaders: HttpAnswer['headers'];
    bytes: Buffer;
  }>((done, fail) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const request = send(url, { method, agent, signal, headers: { ...headers, ...length } });
    request.once('error', fail);
    request.once('response', (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        chunks.push(chunk);
        if (size > MAX_BODY_BYTES) request.destroy(new DatasourceFailure('too_much'));
      });
      response.once('error', fail);
      response.once('end', () =>
        done({
          status: response.statusCode ?? 0,
          answerHeaders: response.headers,
          bytes: Buffer.concat(chunks),
        }),
      );
    });
    request.end(body);
  });
  const isZipped = answerHeaders['content-encoding'] === 'gzip';
  const text = isZipped ? await unzipped(bytes) : bytes;
  return { status, headers: answerHeaders, body: await parsePage(text, page) };
}

async function unzipped(bytes: Buffer): Promise<Buffer> {
  try {
    return await unzip(bytes, { maxOutputLength: MAX_BODY_BYTES });
  } catch (error) {
    throw codeOf(error) === 'ERR_BUFFER_TOO_LARGE' ? new DatasourceFailure('too_much') : error;
  }
}

/**
 * Returns the signal for a request that begins a statement. It does not abort with `signal`, because the response
 * names the statement to cancel. Instead, the statement is cancelled after the response, or the guard destroys its
 * sockets. Throws when `signal` has already aborted.
 */
export function untilAnswered(signal: AbortSignal): AbortSignal {
  signal.throwIfAborted();
  return new AbortController().signal;
}

/** A statement that was rejected, by the server or before it was sent, with the message for the user. */
export class RemoteError extends Error {
  /** The server's code for the error, which `classify` reads. */
  readonly reason: string;
  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Returns the server's message if the error is about a statement. */
export function explainRemote(error: unknown): string | undefined {
  return error instanceof RemoteError ? error.message : undefined;
}

/** Returns the error for a statement that may write, for databases without a read-only mode. */
export function refuseWriting(): RemoteError {
  return new RemoteError('READ_ONLY', 'Only statements that read are allowed here.');
}

/** Returns the category of an unsuccessful HTTP status. */
export function categoryOfStatus(status: number): 'authentication' | 'database_missing' | 'failed' {
  if (status === 401 || status === 403) return 'authentication';
  return status === 404 ? 'database_missing' : 'failed';
}
