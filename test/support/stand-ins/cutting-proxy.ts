/** A TCP proxy whose connections a test can cut, as networks do. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Owner } from '../server-fixture.ts';

/** The running proxy. */
export interface CuttingProxy {
  readonly baseUrl: string;
  /** How many connections there have been. */
  readonly connections: number;
  /** Resets every open connection. */
  cut(): void;
}

/** Starts a proxy to `target`, which ends with the owner. */
export async function startCuttingProxy(owner: Owner, target: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let connections = 0;
  const server = createServer((near) => {
    connections++;
    const far = connect(Number(port), hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from);
      from.on('error', () => {}); // 'close' follows
      from.once('close', () => {
        open.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of open) socket.resetAndDestroy();
  };
  owner.after(async () => {
    cut();
    server.close();
  });
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get connections() {
      return connections;
    },
    cut,
  };
}
