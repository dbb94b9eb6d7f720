/**
 * A second port for proxies that speak HTTP/1.0 to the servers behind them, as nginx before 1.29.7 does unless told
 * otherwise: uWebSockets.js answers that version with 505. Each request is passed on to the server as HTTP/1.1, and its
 * answer back as it comes, streams included. It costs a second pass through this process; what can speak 1.1 should.
 *
 * Its clients are bounded as those of the server itself: connections count into the same limit, ten seconds without a byte
 * end one, and so does a head or a body that drips. A connection takes one request, so that it never takes more than the
 * descriptors it was counted with. Buffers are those of two sockets; who does not read stops the server's writing.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { AppError } from '#src/core/errors.ts';
import type { ConnectionLimit } from './connection-limit.ts';
import { problemReply } from './problem.ts';
import { requestIdFor } from './request-id.ts';
import { GENERAL_HEADERS } from './write-reply.ts';

export interface Http10RelayOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Where the server listens; undefined as long as it does not. */
  readonly target: () => Target | undefined;
  /** What the server's own connections count into, too. */
  readonly connections: ConnectionLimit;
}

interface Target {
  readonly host: string;
  readonly port: number;
}

export interface Http10Relay extends Disposable {
  readonly port: number;
  /** No new connections; those that are open go on. Idempotent. */
  stopListening(): void;
}

/** Of one connection to the next only (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/** The server itself listens here when it listens everywhere. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** Of the connections that clients may have: the server's own port is left the rest. */
const SHARE_OF_CONNECTIONS = 0.5;
/** A connection of a client, and ours to the server. The server counts its end of that one itself. */
const DESCRIPTORS = 2;
/** As uWebSockets.js does: the longest time without a byte, and the least bytes of a body in such a time. */
const IDLE_MS = 10_000;
const MIN_BODY_BYTES = 160 * 1024;
/** Of Node.js: the time for a head, how often it is looked at, and its size. A body has a rule of its own below. */
const LIMITS = {
  headersTimeout: IDLE_MS,
  requestTimeout: 0,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
};

/** Settles once it listens. Rejects when it cannot. Disposing ends every connection. */
export async function openHttp10Relay(options: Http10RelayOptions): Promise<Http10Relay> {
  const { host, port, target, connections } = options;
  const asked = new WeakSet<Socket>();
  const server = createServer(LIMITS, (inbound, answer) => {
    asked.add(inbound.socket);
    // Node.js would keep a connection on which more was asked, although it refuses that.
    answer.on('finish', () => inbound.socket.destroySoon());
    endDrippingBody(inbound);
    const to = target();
    if (to === undefined) refuse(inbound, answer);
    else relay(inbound, answer, to);
  });
  server.maxRequestsPerSocket = 1;
  server.on('connection', limitRelayed(connections));
  server.setTimeout(IDLE_MS, (socket: Socket) => {
    // An event stream may be silent for as long as it likes; who leaves an answer unread may not.
    if (!asked.has(socket) || socket.writableLength > 0) socket.destroy();
  });
  server.listen(port, host);
  await once(server, 'listening').catch((cause: NodeJS.ErrnoException) => {
    throw new Error(`Cannot listen on ${host}, port ${port}, for HTTP/1.0: ${cause.message}`, { cause });
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    stopListening: () => void server.close(),
    [Symbol.dispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Returns what counts connections, and closes those that are too many. */
function limitRelayed(connections: ConnectionLimit): (socket: Socket) => void {
  let open = 0;
  return (socket) => {
    open += DESCRIPTORS;
    const isWithin = connections.count(DESCRIPTORS);
    socket.on('close', () => {
      open -= DESCRIPTORS;
      connections.count(-DESCRIPTORS);
    });
    if (!isWithin || open > connections.limit * SHARE_OF_CONNECTIONS) socket.destroy();
  };
}

/** Ends the connection when too little of the body comes in the time that a connection may be idle. */
function endDrippingBody(inbound: IncomingMessage): void {
  const timer = setTimeout(() => inbound.socket.destroy(), IDLE_MS);
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
    agent: false, // one that is kept could be closed by the server just when it is used
    host: LOOPBACK[host] ?? host,
    port,
    method: inbound.method,
    path: inbound.url,
    headers: [...endToEnd(inbound.rawHeaders), ...missingHost(inbound)],
  });
  let isAnswered = false;
  outbound.on('response', (reply) => {
    isAnswered = true;
    answer.writeHead(reply.statusCode ?? 502, endToEnd(reply.rawHeaders));
    answer.flushHeaders(); // a stream may have nothing to say for a while
    reply.pipe(answer);
    reply.on('error', () => answer.destroy());
  });
  outbound.on('error', () => {
    if (!isAnswered) refuse(inbound, answer); // else it does not take the rest of a body that it has refused
  });
  answer.on('close', () => outbound.destroy());
  inbound.pipe(outbound);
}

/** HTTP/1.0 may leave it out, 1.1 may not. */
function missingHost({ headers, socket }: IncomingMessage): string[] {
  return headers.host === undefined ? ['Host', `${socket.localAddress}:${socket.localPort}`] : [];
}

/** The pairs of a raw header list that go beyond one connection; the list has names and values in turn. */
function endToEnd(raw: readonly string[]): string[] {
  const named = raw.flatMap((text, i) => (i % 2 === 0 ? [[text, raw[i + 1] ?? ''] as const] : []));
  const listed = named
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) => value.split(',').map((one) => one.trim().toLowerCase()));
  const dropped = new Set([...HOP_BY_HOP, ...listed]);
  return named.filter(([name]) => !dropped.has(name.toLowerCase())).flat();
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
