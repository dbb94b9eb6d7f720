/** The TLS server for nodes: every connection begins with one line that says what it is for. */

import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { KernelLog } from '#src/confined/host/zygote-process.ts';
import { ShapeError } from '#src/confined/json-shape.ts';
import { listenFailure } from '#src/core/listen-failure.ts';
import { unawaited } from '#src/core/unawaited.ts';
import type { Credentials } from './certificates.ts';
import { type Fields, readFirstLine, sendLine, tune } from './protocol.ts';

/** Connections that are open and have not said what they are for. */
const MAX_STRANGERS = 256;
const HANDSHAKE_MS = 10_000;

export interface NodeServerOptions {
  readonly host: string;
  /** The ports to try, in this order. */
  readonly ports: readonly number[];
  readonly authority: Credentials;
  readonly log: KernelLog;
  /** Takes a connection. A `ShapeError` is told to the other side. */
  readonly take: (socket: TLSSocket, first: Fields, rest: Buffer) => Promise<void> | void;
}

export interface NodeServer extends AsyncDisposable {
  readonly port: number;
}

/** Resolves when it listens. Rejects with one line when none of the ports can be had. */
export async function openNodeServer(options: NodeServerOptions): Promise<NodeServer> {
  const { host, ports, authority, log, take } = options;
  const { makeServerCredentials } = await import('./certificates.ts');
  const { key, cert } = await makeServerCredentials(authority);
  const sockets = new Set<TLSSocket>();
  let strangers = 0;
  let isEnded = false;
  const server = createServer(
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
  server.on('tlsClientError', (error) =>
    log.warn({ reason: error.message }, 'a connection of a kernel node failed'),
  );

  async function welcome(socket: TLSSocket): Promise<void> {
    tune(socket);
    socket.on('error', () => undefined); // 'close' follows
    if (isEnded || strangers >= MAX_STRANGERS) {
      socket.destroy();
      return;
    }
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    strangers++;
    const reading = readFirstLine(socket).finally(() => strangers--);
    try {
      const { first, rest } = await reading;
      if (isEnded) socket.destroy();
      else await take(socket, first, rest);
    } catch (error) {
      const isTheirs = error instanceof ShapeError;
      log.warn(
        { address: socket.remoteAddress, reason: error instanceof Error ? error.message : 'unknown' },
        'a connection of a kernel node was refused',
      );
      refuse(socket, isTheirs ? error.message : 'The server could not read this.');
    }
  }

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

/** Tells the other side why it is refused, and ends the connection. */
export function refuse(socket: TLSSocket, reason: string): void {
  sendLine(socket, { op: 'refused', reason });
  socket.end();
  socket.resume(); // so that its end is noticed
}
