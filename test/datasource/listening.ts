import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';

/** A test context, or `node:test` itself for what all tests of a file share. */
export interface Owner {
  after(cleanUp: () => Promise<void>): void;
}

/** Listens on a free port of 127.0.0.1 until the test has ended, and gives the port. */
export async function listening(owner: Owner, server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {}); // the other side was cut off, which is often the point
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

/** A server that hands every connection to `serve`. */
export function listeningWith(owner: Owner, serve: (socket: Socket) => void): Promise<number> {
  return listening(owner, createServer(serve));
}
