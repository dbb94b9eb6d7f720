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

/** Requests that the proxy loses once: each first request whose method and path match, and which is not like an earlier one. */
export interface Losses {
  /** The request does not arrive. */
  readonly request?: RegExp;
  /** The request arrives, and its answer is lost. */
  readonly answer?: RegExp;
}

/** Starts a proxy to `target`, which ends with the owner. A connection carries one request after the other, each in one piece. */
export async function startCuttingProxy(
  owner: Owner,
  target: string,
  losses: Losses = {},
): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  const lost = new Set<string>();
  const isLost = (head: string, pattern: RegExp | undefined) => {
    if (pattern?.test(head) !== true || lost.has(head)) return false;
    lost.add(head);
    return true;
  };
  let connections = 0;
  const server = createServer((near) => {
    connections++;
    const far = connect(Number(port), hostname);
    let losesAnswer = false;
    near.on('data', (bytes) => {
      const head = /^[A-Z]+ \S+/.exec(bytes.toString('latin1'))?.[0] ?? '';
      losesAnswer ||= isLost(head, losses.answer);
      if (!isLost(head, losses.request)) return;
      near.resetAndDestroy();
      far.destroy(); // so that it is not given what has just come
    });
    far.on('data', () => {
      if (losesAnswer) near.resetAndDestroy();
    });
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
