/** The TLS server for nodes: every connection begins with one line that names its purpose. */

import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { unawaited } from '#src/base/async/unawaited.ts';
import { networkOf } from '#src/base/net/ip-address.ts';
import { listenFailure } from '#src/base/net/listen-failure.ts';
import type { KernelLog } from '../processes/host/zygote-process.ts';
import { ShapeError } from '../processes/json-shape.ts';
import type { Credentials } from './certificates.ts';
import { type FrameFields, readFirstLine, sendLine, tune } from './protocol.ts';

const HANDSHAKE_MS = 10_000;
/** How long the other side of an ended connection may take to close its end. */
const FAREWELL_MS = 5000;
/** Connections that no node is known to have made, of addresses from which no node has joined. */
const MAX_STRANGERS = 256;
/** Such connections of one IPv4 address, or of one IPv6 network of 64 bits, because one machine may have all addresses of a network. */
const MAX_OF_STRANGE_NETWORK = 64;
/**
 * The most unidentified connections of one address from which a node has joined. The number is larger,
 * because each kernel of a node opens a connection.
 */
const MAX_OF_NODE_ADDRESS = 256;
/** Addresses of nodes that are remembered; the oldest is forgotten first. */
const MAX_NODE_ADDRESSES = 1024;
/** Marks the groups of such addresses. */
const OF_NODE = 'node ';

/**
 * The connections that no node is known to have made, counted from the moment they were accepted, before TLS. Those of a node count
 * until its first line was accepted, and all others until they are closed: a machine that enrols needs its connection for a moment only. When an
 * address has its share, or all places are taken, the oldest connection of the address with the most makes room: a program that opens
 * connections and stays silent closes its own, and no connection of a node.
 */
export class Strangers {
  /**
   * The connections by network, or by address for addresses of nodes; then by address and port, oldest first.
   */
  readonly #groups = new Map<string, Map<string, Socket>>();
  /** The group of each connection. */
  readonly #groupOf = new Map<string, string>();
  readonly #ofNodes = new Set<string>();

  admit(socket: Socket): void {
    const { remoteAddress: address = '', remotePort: port = 0 } = socket;
    const isOfNode = this.#ofNodes.has(address);
    const group = isOfNode ? `${OF_NODE}${address}` : networkOf(address);
    const own = this.#groups.get(group) ?? new Map<string, Socket>();
    if (own.size >= (isOfNode ? MAX_OF_NODE_ADDRESS : MAX_OF_STRANGE_NETWORK)) this.#evict(own);
    else if (!isOfNode) this.#makeRoom();
    const name = `${address} ${port}`;
    this.#forget(name); // an earlier connection from this port has ended
    own.set(name, socket);
    this.#groups.set(group, own);
    this.#groupOf.set(name, group);
    socket.once('close', () => {
      if (own.get(name) === socket) this.#forget(name);
    });
  }

  /** Forgets a connection that has closed, or whose first line was accepted. */
  release(address: string, port: number): void {
    this.#forget(`${address} ${port}`);
  }

  /** Remembers that a node has joined from this address. */
  remember(address: string): void {
    this.#ofNodes.delete(address);
    this.#ofNodes.add(address);
    const [oldest] = this.#ofNodes;
    if (this.#ofNodes.size > MAX_NODE_ADDRESSES && oldest !== undefined) this.#ofNodes.delete(oldest);
  }

  #makeRoom(): void {
    let all = 0;
    let most: Map<string, Socket> | undefined;
    for (const [group, sockets] of this.#groups) {
      if (group.startsWith(OF_NODE)) continue;
      all += sockets.size;
      if (sockets.size > (most?.size ?? 0)) most = sockets;
    }
    if (all >= MAX_STRANGERS && most !== undefined) this.#evict(most);
  }

  /** Closes the oldest connection of a group. */
  #evict(sockets: Map<string, Socket>): void {
    for (const [name, oldest] of sockets) {
      this.#forget(name);
      oldest.destroy();
      return;
    }
  }

  #forget(name: string): void {
    const group = this.#groupOf.get(name);
    if (group === undefined) return;
    this.#groupOf.delete(name);
    const own = this.#groups.get(group);
    own?.delete(name);
    if (own?.size === 0) this.#groups.delete(group);
  }
}

export interface NodeServerOptions {
  readonly host: string;
  /** The ports to try, in this order. */
  readonly ports: readonly number[];
  readonly authority: Credentials;
  readonly log: KernelLog;
  /** Takes a connection. The message of a `ShapeError` is sent to the other side. */
  readonly take: (socket: TLSSocket, first: FrameFields, rest: Buffer) => Promise<void> | void;
}

export interface NodeServer extends AsyncDisposable {
  readonly port: number;
}

/** Resolves when the server listens. Rejects with one line when all of the ports are taken. */
export async function openNodeServer(options: NodeServerOptions): Promise<NodeServer> {
  const { host, ports, authority, log, take } = options;
  const { makeServerCredentials } = await import('./certificates.ts');
  const { key, cert } = await makeServerCredentials(authority);
  const sockets = new Set<Socket>();
  const strangers = new Strangers();
  let isEnded = false;
  const tls = createTlsServer(
    {
      key,
      cert: `${cert}\n${authority.cert}`,
      ca: authority.cert,
      requestCert: true,
      rejectUnauthorized: false, // a machine with an invitation has no certificate yet
      minVersion: 'TLSv1.3',
      handshakeTimeout: HANDSHAKE_MS,
    },
    (socket) => unawaited(welcome(socket), 'node-server: the welcome of a node'),
  );
  tls.on('tlsClientError', (error) =>
    log.warn({ reason: error.message }, 'a connection of a kernel node failed'),
  );

  async function welcome(socket: TLSSocket): Promise<void> {
    tune(socket);
    socket.on('error', () => undefined); // 'close' follows
    const { remoteAddress: address = '', remotePort: port = 0 } = socket;
    try {
      const { first, rest } = await readFirstLine(socket);
      if (isEnded) {
        socket.destroy();
        return;
      }
      await take(socket, first, rest);
      if (!socket.authorized) return;
      // Only now: the certificate of a node that was removed stays valid for TLS.
      strangers.remember(address);
      strangers.release(address, port);
    } catch (error) {
      const isTheirs = error instanceof ShapeError;
      log.warn(
        { address: socket.remoteAddress, reason: error instanceof Error ? error.message : 'unknown' },
        'a connection of a kernel node was refused',
      );
      refuse(socket, isTheirs ? error.message : 'The server could not read this.');
    }
  }

  // TLS begins only after a connection was counted.
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => undefined);
    strangers.admit(socket);
    tls.emit('connection', socket);
  });

  for (const [index, port] of ports.entries()) {
    try {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen({ host, port, exclusive: true }, () => {
          server.off('error', reject);
          resolve();
        });
      });
      break;
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      if (index === ports.length - 1 || code !== 'EADDRINUSE')
        throw new Error(listenFailure(code, { host, port }), { cause });
    }
  }
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      isEnded = true;
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Sends the reason of the refusal to the other side, and ends the connection. */
export function refuse(socket: TLSSocket, reason: string): void {
  sendLine(socket, { op: 'refused', reason });
  endSoon(socket);
}

/** Ends a connection, and destroys it after five seconds if the other side neither closes it nor reads. */
export function endSoon(socket: TLSSocket): void {
  const patience = setTimeout(() => socket.destroy(), FAREWELL_MS).unref();
  socket.once('close', () => clearTimeout(patience));
  socket.end();
  socket.resume(); // so that its end is noticed
}
