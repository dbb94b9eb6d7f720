import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';

/** A test context, or `node:test` itself for a resource that all tests of a file share. */
export interface Owner {
  after(cleanUp: () => Promise<void>): void;
}

/** Listens on a free port of 127.0.0.1 until the test ends. Returns the port. */
export async function listening(owner: Owner, server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {}); // the peer was cut off, which many tests do on purpose
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  owner.after(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('The server does not listen on a port.');
  return address.port;
}

/** Starts a server that passes every connection to `serve`. Returns the port. */
export function listeningWith(owner: Owner, serve: (socket: Socket) => void): Promise<number> {
  return listening(owner, createServer(serve));
}
