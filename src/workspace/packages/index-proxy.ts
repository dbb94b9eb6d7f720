/**
 * The proxy between an installer and the package index. It serves HTTP on loopback, only to the holder of its
 * password. It resolves names itself, and connects only to addresses that the egress rules of this server allow.
 * Disposing of it closes every connection.
 */

import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  request as forward,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { invariant } from '#src/base/errors/invariant.ts';

/** A checked way to one server. */
export interface IndexRoute extends Disposable {
  connect(): Socket;
}

/** Checks a target. Rejects when it may not be reached, or cannot be found. */
export type AdmitTarget = (host: string, port: number, signal: AbortSignal) => Promise<IndexRoute>;

const ADMIT_TIMEOUT_MS = 15_000;
/**
 * The most bytes of a request's head, which contains the password. An installer sends it as soon as
 * it has connected.
 */
const LIMITS = { headersTimeout: 10_000, connectionsCheckingInterval: 1_000, maxHeaderSize: 8 * 1024 };
/**
 * How many connections without the password may be open. One more ends the oldest, so that an installer can always
 * connect.
 */
const MAX_STRANGERS = 128;

export class IndexProxy implements AsyncDisposable {
  readonly port: number;
  readonly #server: ReturnType<typeof createServer>;
  readonly #password = randomBytes(24).toString('hex');
  readonly #admit: AdmitTarget;
  readonly #index: string;
  readonly #routes = new Set<IndexRoute>();
  /** Connections that have not shown the password yet, the oldest first. */
  readonly #strangers = new Set<Socket>();
  #refusal: string | undefined;
  #isClosed = false;

  private constructor(
    server: ReturnType<typeof createServer>,
    port: number,
    index: string,
    admit: AdmitTarget,
  ) {
    this.#server = server;
    this.port = port;
    this.#index = index;
    this.#admit = admit;
    // Every local program can send anything to this port, so a failure here must not end the server.
    server.on('connection', (socket: Socket) => this.#meet(socket));
    server.on('connect', (request, socket: Socket, head) => {
      this.#tunnel(request, socket, head).catch(() => socket.destroy());
    });
    server.on('request', (request, response) => {
      this.#forward(request, response).catch(() => response.destroy());
    });
  }

  static async open(index: string, admit: AdmitTarget): Promise<IndexProxy> {
    const server = createServer(LIMITS).listen({ port: 0, host: '127.0.0.1', exclusive: true });
    await once(server, 'listening');
    const address = server.address();
    invariant(address !== null && typeof address !== 'string', 'A proxy that listens has a port.');
    return new IndexProxy(server, address.port, index, admit);
  }

  /** The URL with the password: for the environment of the installer, and for nothing else. */
  get url(): string {
    return `http://troupe:${this.#password}@127.0.0.1:${this.port}`;
  }

  /** The reason why the index could not be reached, with advice; undefined when it was reached, or never asked. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const route of this.#routes) route[Symbol.dispose]();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #meet(socket: Socket): void {
    this.#strangers.add(socket);
    socket.once('close', () => this.#strangers.delete(socket));
    const [oldest] = this.#strangers;
    if (this.#strangers.size > MAX_STRANGERS) oldest?.destroy();
  }

  async #tunnel(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    socket.on('error', () => {});
    const address = `http://${request.url ?? ''}`;
    const target = this.#isOurs(request) && URL.canParse(address) ? new URL(address) : undefined;
    const port = Number(target?.port || (address.endsWith(':80') ? 80 : 443));
    const upstream = target && (await this.#connect(target.hostname, port));
    if (upstream === undefined) {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const end = () => upstream.destroy();
    socket.on('close', end);
    upstream.on('close', () => socket.destroy());
    if (socket.destroyed) end(); // the client has left while the connection was being opened
    upstream.write(head);
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    upstream.pipe(socket).pipe(upstream);
  }

  /** A request to an index without TLS, for example on loopback. */
  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = URL.canParse(request.url ?? '') ? new URL(request.url ?? '') : undefined;
    const upstream =
      target?.protocol === 'http:' && this.#isOurs(request)
        ? await this.#connect(target.hostname, Number(target.port || 80))
        : undefined;
    if (target === undefined || upstream === undefined) {
      response.writeHead(403, { connection: 'close' }).end();
      return;
    }
    const path = `${target.pathname}${target.search}`;
    const headers = endToEnd(request.headers);
    // Each request has a connection of its own, so none reaches the target of another one.
    const outgoing = forward({ method: request.method, path, headers, createConnection: () => upstream });
    outgoing.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, endToEnd(answer.headers));
      // If an answer is cut off, the client's connection is ended: the client would otherwise wait for the rest.
      pipeline(answer, response, () => {});
    });
    outgoing.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    if (response.destroyed) upstream.destroy(); // the client has left while the connection was being opened
    request.pipe(outgoing);
  }

  async #connect(host: string, port: number): Promise<Socket | undefined> {
    const plain = host.replace(/^\[|\]$/g, '');
    try {
      const route = await this.#admit(plain, port, AbortSignal.timeout(ADMIT_TIMEOUT_MS));
      if (this.#isClosed) {
        route[Symbol.dispose]();
        return undefined;
      }
      this.#routes.add(route);
      const socket = route.connect();
      await once(socket, 'connect');
      return socket;
    } catch {
      this.#refusal ??=
        `The package index ${this.#index} cannot be reached from this server (${plain}:${port}). Check its network and the ` +
        'egress rules (TROUPE_EGRESS_ALLOW), name an index that it reaches with TROUPE_PACKAGE_INDEX, or install the packages into ' +
        'the Python environment of kernels and set TROUPE_PACKAGES=false.';
      return undefined;
    }
  }

  #isOurs({ headers, socket }: IncomingMessage): boolean {
    const expected = Buffer.from(`Basic ${Buffer.from(`troupe:${this.#password}`).toString('base64')}`);
    const given = Buffer.from(headers['proxy-authorization'] ?? '');
    const isOurs = given.length === expected.length && timingSafeEqual(given, expected);
    if (isOurs) this.#strangers.delete(socket);
    return isOurs;
  }
}

/** Headers that are about one connection, not about the message (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-authorization', 'proxy-connection', 'te', 'upgrade'];

/**
 * Returns the headers that are passed on to the other side. Whether a connection stays open is
 * decided on each side.
 */
function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name)));
}
