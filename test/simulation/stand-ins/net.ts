/**
 * `node:net` for the server of a simulation: unix sockets in memory, by which kernels and other workers reach it, and the ports at which
 * nodes do.
 */
import { EventEmitter } from 'node:events';
import * as net from 'node:net';
import { type World, world } from '../world/world.ts';
import { LinkedSocket } from './linked-socket.ts';
import { type FarEnd, MemorySocket } from './memory-socket.ts';
import { listenersOf, type WireSocket } from './wire.ts';

export * from 'node:net';

/** The time that the system takes until a socket listens. */
const LISTEN_MS = 0.02;
const ACCEPT_MS = 0.03;
/** The longest time until a kernel notices that its server is gone. */
const NOTICE_MS = 5;

type Accepted = MemorySocket | LinkedSocket | WireSocket;

/** An address: a unix socket, or a port. */
interface Address {
  readonly path?: string;
  readonly port?: number;
}

class MemoryServer extends EventEmitter {
  listening = false;
  readonly life = world().life;
  readonly #receive: (socket: Accepted) => void;
  #path = '';
  #port = 0;

  constructor(receive: (socket: Accepted) => void) {
    super();
    this.#receive = receive;
  }

  listen({ path, port = 0 }: Address, listening: () => void): this {
    world().after(LISTEN_MS, () => {
      if (path === undefined && !this.#bind(port)) {
        this.emit('error', Object.assign(new Error(`listen EADDRINUSE :${port}`), { code: 'EADDRINUSE' }));
        return;
      }
      this.listening = true;
      if (path !== undefined) {
        this.#path = path;
        here().set(path, this);
      }
      listening();
    });
    return this;
  }

  /** Returns false when another process that lives listens at the port. */
  #bind(port: number): boolean {
    const all = listenersOf(world());
    if (all.get(port)?.life.isOver === false) return false;
    all.set(port, this);
    this.#port = port;
    return true;
  }

  address(): { readonly port: number } {
    return { port: this.#port };
  }

  accept(socket: Accepted): void {
    if (this.listening) this.#receive(socket);
    else socket.destroy();
  }

  close(closed?: () => void): this {
    this.listening = false;
    if (here().get(this.#path) === this) here().delete(this.#path);
    const ports = listenersOf(world());
    if (ports.get(this.#port) === this) ports.delete(this.#port);
    if (closed !== undefined) world().after(LISTEN_MS, closed);
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

export function createServer(receive: (socket: Accepted) => void): MemoryServer {
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
