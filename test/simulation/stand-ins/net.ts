/** `node:net` for the server of a simulation: unix sockets in memory, by which kernels reach it. */
import { EventEmitter } from 'node:events';
import * as net from 'node:net';
import { world } from '../world/world.ts';
import { type FarEnd, MemorySocket } from './memory-socket.ts';

export * from 'node:net';

/** The time that the system takes until a socket listens. */
const LISTEN_MS = 0.02;
const ACCEPT_MS = 0.03;

class MemoryServer extends EventEmitter {
  listening = false;
  readonly life = world().life;
  readonly #receive: (socket: MemorySocket) => void;
  #path = '';

  constructor(receive: (socket: MemorySocket) => void) {
    super();
    this.#receive = receive;
  }

  listen({ path }: { readonly path: string }, listening: () => void): this {
    world().after(LISTEN_MS, () => {
      this.listening = true;
      this.#path = path;
      servers.set(path, this);
      listening();
    });
    return this;
  }

  accept(socket: MemorySocket): void {
    if (this.listening) this.#receive(socket);
    else socket.destroy();
  }

  close(): this {
    this.listening = false;
    if (servers.get(this.#path) === this) servers.delete(this.#path);
    return this;
  }
}

const servers = new Map<string, MemoryServer>();

export function createServer(receive: (socket: MemorySocket) => void): MemoryServer {
  return new MemoryServer(receive);
}

/** Connects to the unix socket at `path`. Returns undefined when nobody listens there. */
export function connectTo(path: string, far: FarEnd): MemorySocket | undefined {
  const server = servers.get(path);
  if (server === undefined || server.life.isOver) return undefined;
  const socket = new MemorySocket(far, server.life);
  world().after(ACCEPT_MS, () => server.accept(socket), server.life);
  return socket;
}

export default { ...net, createServer };
