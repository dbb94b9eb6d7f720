/**
 * A second port for proxies that speak HTTP/1.0 to their upstream servers, as nginx before 1.29.7 does by default:
 * uWebSockets.js answers HTTP/1.0 with 505. Each request is forwarded to the server as HTTP/1.1 and its response is
 * streamed back. Every request passes through this process twice, so proxies should use HTTP/1.1 where they can.
 *
 * Its clients are limited as those of the server itself. Connections count towards the same limit. Ten seconds without a
 * byte end a connection, and so does a head or a body that arrives too slowly. A connection takes one request, so that it
 * never uses more descriptors than it was counted with. Only the two sockets buffer: a client that does not read stops the
 * server from writing.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { AppError } from '#src/core/errors.ts';
import { listenFailure } from '#src/core/listen-failure.ts';
import { loadInheritedListener } from '#src/os/listening-socket.ts';
import { problemReply } from '../reply/problem.ts';
import { GENERAL_HEADERS } from '../reply/write-reply.ts';
import type { ConnectionLimit } from './connection-limit.ts';
import { requestIdFor } from './request-head.ts';

export interface Http10RelayOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** A socket that is bound to this address. It stays open when the relay closes. */
  readonly descriptor?: number | undefined;
  /** Returns where the server listens; undefined while it does not. */
  readonly target: () => Target | undefined;
  /** The limit that the server's own connections count towards as well. */
  readonly connections: ConnectionLimit;
}

interface Target {
  readonly host: string;
  readonly port: number;
}

export interface Http10Relay extends Disposable {
  readonly port: number;
  /** Refuses new connections; open ones go on. Idempotent. */
  stopListening(): void;
}

/** Headers that apply to a single connection and must not be forwarded (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/**
 * Headers that say where a request ends and to whom it goes. A client must not name them in `Connection` (RFC 9110, section
 * 7.6.1), and when it does, they are forwarded all the same: without them the server would take the body for another request.
 */
const NEVER_LISTED = new Set(['content-length', 'host', 'transfer-encoding']);
/** The names of headers that uWebSockets.js can parse. It never answers a request that has a header with another name. */
const FORWARDABLE_NAME = /^[a-z0-9-]+$/i;
const MAY_HAVE_BODY = new Set(['PATCH', 'POST', 'PUT']);
/** The address at which to reach a server that listens on every interface. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** The share of all client connections that may use this port; the rest is left to the server's own. */
const MAX_SHARE_OF_CONNECTIONS = 0.5;
/** The client's connection and ours to the server. The server counts its own end of the latter. */
const DESCRIPTORS_PER_CONNECTION = 2;
/** As in uWebSockets.js: how long a connection may be idle, and how many bytes of a body must arrive in such a time. */
const MAX_IDLE_MS = 10_000;
const MIN_BODY_BYTES = 160 * 1024;
/** Limits of Node.js for the head of a request. For bodies see `endDrippingBody`. */
const LIMITS = {
  headersTimeout: MAX_IDLE_MS,
  requestTimeout: 0,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
};

/** Resolves once the relay listens; rejects when it cannot. Disposing it ends every connection. */
export async function openHttp10Relay(options: Http10RelayOptions): Promise<Http10Relay> {
  const { host, port, descriptor, target, connections } = options;
  const asked = new WeakSet<Socket>();
  const server = createServer(LIMITS, (inbound, answer) => {
    asked.add(inbound.socket);
    // Node.js would keep a connection open on which a second request arrived, although it refuses that request.
    answer.on('finish', () => inbound.socket.destroySoon());
    endDrippingBody(inbound);
    const to = target();
    if (to === undefined) refuse(inbound, answer);
    else relay(inbound, answer, to);
  });
  server.maxRequestsPerSocket = 1;
  server.on('connection', limitRelayed(connections));
  server.setTimeout(MAX_IDLE_MS, (socket: Socket) => {
    // An event stream may be silent for as long as it likes, but a client must read what was sent.
    if (!asked.has(socket) || socket.writableLength > 0) socket.destroy();
  });
  const inherited = descriptor === undefined ? undefined : await loadInheritedListener(descriptor);
  server.once('listening', () => inherited?.replace(inherited.find(portOf(server))));
  // Without `exclusive` the primary of a server with workers would accept the connections.
  const own = inherited === undefined ? { host, port } : { host: '127.0.0.1', port: 0 };
  server.listen({ ...own, exclusive: true });
  await once(server, 'listening').catch((cause: NodeJS.ErrnoException) => {
    throw new Error(listenFailure(cause.code, { host, port }, 'TROUPE_HTTP10_PORT'), { cause });
  });
  return {
    port: portOf(server),
    stopListening: () => void server.close(),
    [Symbol.dispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server does not listen.');
  return address.port;
}

/** Returns a listener that counts connections and closes those beyond the limit. */
function limitRelayed(connections: ConnectionLimit): (socket: Socket) => void {
  let open = 0;
  return (socket) => {
    open += DESCRIPTORS_PER_CONNECTION;
    const isWithin = connections.count(DESCRIPTORS_PER_CONNECTION);
    socket.on('close', () => {
      open -= DESCRIPTORS_PER_CONNECTION;
      connections.count(-DESCRIPTORS_PER_CONNECTION);
    });
    if (!isWithin || open > connections.limit * MAX_SHARE_OF_CONNECTIONS) socket.destroy();
  };
}

/** Ends the connection when the body arrives too slowly: less than `MIN_BODY_BYTES` in `MAX_IDLE_MS`. */
function endDrippingBody(inbound: IncomingMessage): void {
  const timer = setTimeout(() => inbound.socket.destroy(), MAX_IDLE_MS);
  let bytes = 0;
  inbound.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes < MIN_BODY_BYTES) return;
    bytes = 0;
    timer.refresh();
  });
  for (const event of ['end', 'close']) inbound.on(event, () => clearTimeout(timer));
}

function relay(inbound: IncomingMessage, answer: ServerResponse, { host, port }: Target): void {
  const outbound = request({
    agent: false, // the server could close a kept connection at the moment of its next use
    host: LOOPBACK[host] ?? host,
    port,
    method: inbound.method,
    path: inbound.url,
    headers: [...endToEnd(inbound.rawHeaders), ...missingHost(inbound), ...framing(inbound)],
  });
  let isAnswered = false;
  outbound.on('response', (reply) => {
    isAnswered = true;
    answer.writeHead(reply.statusCode ?? 502, endToEnd(reply.rawHeaders));
    answer.flushHeaders(); // an event stream may send nothing for a while
    reply.pipe(answer);
    reply.on('error', () => answer.destroy());
  });
  outbound.on('error', () => {
    if (!isAnswered) refuse(inbound, answer); // otherwise the server only stopped reading a body that it refused
  });
  answer.on('close', () => outbound.destroy());
  inbound.pipe(outbound);
}

/** Returns a `Host` header for requests without one: HTTP/1.0 does not require it, HTTP/1.1 does. */
function missingHost({ headers, socket }: IncomingMessage): string[] {
  return headers.host === undefined ? ['Host', `${socket.localAddress}:${socket.localPort}`] : [];
}

/**
 * Returns the header that says where the body ends, unless it is forwarded anyway. Without that header Node.js would
 * write the body of a DELETE or GET without any framing, so that the server would read it as another request, and it
 * would give a POST without a body a chunked one.
 */
function framing({ headers, method = '' }: IncomingMessage): string[] {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined) return ['Transfer-Encoding', coding];
  return MAY_HAVE_BODY.has(method) && headers['content-length'] === undefined ? ['Content-Length', '0'] : [];
}

/** Returns the headers to forward. `raw` alternates names and values, as Node's `rawHeaders`. */
function endToEnd(raw: readonly string[]): string[] {
  const named = raw.flatMap((text, i) => (i % 2 === 0 ? [[text, raw[i + 1] ?? ''] as const] : []));
  const listed = named
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) => value.split(',').map((one) => one.trim().toLowerCase()))
    .filter((name) => !NEVER_LISTED.has(name));
  const dropped = new Set([...HOP_BY_HOP, ...listed]);
  return named.filter(([name]) => FORWARDABLE_NAME.test(name) && !dropped.has(name.toLowerCase())).flat();
}

function refuse({ headers, url = '/' }: IncomingMessage, answer: ServerResponse): void {
  const requestId = requestIdFor(String(headers['x-request-id'] ?? ''));
  const error = new AppError('unavailable', 'The server does not take requests now.');
  const {
    status,
    contentType,
    bytes,
    headers: more,
  } = problemReply(error, {
    requestId,
    instance: url.split('?', 1)[0] ?? url,
  });
  answer.writeHead(status, {
    ...GENERAL_HEADERS,
    ...more,
    'content-type': contentType,
    'x-request-id': requestId,
  });
  answer.end(bytes);
}
