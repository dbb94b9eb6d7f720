/** `node:net` for the server of a simulation: unix sockets in memory, by which kernels and other workers reach it. */
import { EventEmitter } from 'node:events';
import * as net from 'node:net';
import { type World, world } from '../world/world.ts';
import { LinkedSocket } from './linked-socket.ts';
import { type FarEnd, MemorySocket } from './memory-socket.ts';

export * from 'node:net';

/** The time that the system takes until a socket listens. */
const LISTEN_MS = 0.02;
const ACCEPT_MS = 0.03;
/** The longest time until a kernel notices that its server is gone. */
const NOTICE_MS = 5;

class MemoryServer extends EventEmitter {
  listening = false;
  readonly life = world().life;
  readonly #receive: (socket: MemorySocket | LinkedSocket) => void;
  #path = '';

  constructor(receive: (socket: MemorySocket | LinkedSocket) => void) {
    super();
    this.#receive = receive;
  }

  listen({ path }: { readonly path: string }, listening: () => void): this {
    world().after(LISTEN_MS, () => {
      this.listening = true;
      this.#path = path;
      here().set(path, this);
      listening();
    });
    return this;
  }

  accept(socket: MemorySocket | LinkedSocket): void {
    if (this.listening) this.#receive(socket);
    else socket.destroy();
  }

  close(): this {
    this.listening = false;
    if (here().get(this.#path) === this) here().delete(this.#path);
    return this;
  }
}

const servers = new WeakMap<World, Map<string, MemoryServer>>();

/** Returns the servers of this world, by their paths. */
function here(): Map<string, MemoryServer> {
  const all = servers.get(world()) ?? new Map<string, MemoryServer>();
  servers.set(world(), all);
  return all;
}

function listenerAt(path: string): MemoryServer | undefined {
  const server = here().get(path);
  return server?.life.isOver === true ? undefined : server;
}

export function createServer(receive: (socket: MemorySocket | LinkedSocket) => void): MemoryServer {
  return new MemoryServer(receive);
}

/** Connects a kernel to the unix socket at `path`. Returns undefined when nobody listens there. */
export function connectTo(path: string, far: FarEnd): MemorySocket | undefined {
  const server = listenerAt(path);
  if (server === undefined) return undefined;
  const now = world();
  const socket = new MemorySocket(far, server.life);
  now.after(ACCEPT_MS, () => server.accept(socket), server.life);
  if (server.life.graph !== undefined)
    now.atEnd(server.life, () => now.after(now.ofLinks.next() * NOTICE_MS, () => far.closed(), far.life));
  return socket;
}

/** Connects one process with another one that listens at `path`. */
export function connect(path: string): LinkedSocket {
  const now = world();
  const socket = new LinkedSocket(now.life);
  now.after(ACCEPT_MS, () => {
    const server = listenerAt(path);
    if (server === undefined) {
      socket.emit(
        'error',
        Object.assign(new Error(`connect ECONNREFUSED ${path}`), { code: 'ECONNREFUSED' }),
      );
      socket.destroy();
      return;
    }
    const other = new LinkedSocket(server.life);
    socket.join(other);
    now.after(ACCEPT_MS, () => server.accept(other), server.life);
    socket.emit('connect');
  });
  return socket;
}

export default { ...net, createServer, connect };
