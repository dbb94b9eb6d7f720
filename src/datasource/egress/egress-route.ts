/**
 * A way to one server that was judged before: its sockets connect to the addresses that were judged and to nothing
 * else, whatever the name resolves to by then. Disposing of the route destroys every socket it ever made.
 */
import { connect, type LookupFunction, type Socket } from 'node:net';
import type { AddressScope } from './address-scope.ts';
import type { IpAddress } from './ip-address.ts';

export interface EgressRoute extends Disposable {
  /** As it was named: what certificates and `Host` headers are about. */
  readonly host: string;
  readonly port: number;
  readonly scope: Exclude<AddressScope, 'forbidden'>;
  /** A socket that is connecting. The route destroys it at its own end at the latest. */
  connect(): Socket;
  /** Received on all sockets so far. */
  receivedBytes(): number;
}

export interface EgressRouteOptions extends Pick<EgressRoute, 'host' | 'port' | 'scope'> {
  /** Tried in this order; at least one. */
  readonly addresses: readonly IpAddress[];
}

export function openEgressRoute({ host, port, scope, addresses }: EgressRouteOptions): EgressRoute {
  const sockets = new Set<Socket>();
  let closedBytes = 0;
  const lookup = pinnedLookup(addresses);
  return {
    host,
    port,
    scope,
    connect() {
      // An address would be dialled as it is; any name makes Node.js ask `lookup`, which answers with all addresses.
      const socket = connect({ host: 'pinned.invalid', port, lookup, noDelay: true, keepAlive: true });
      // What TLS checks certificates against when a driver names no host of its own.
      Reflect.set(socket, '_host', host);
      sockets.add(socket);
      socket.once('close', () => {
        sockets.delete(socket);
        closedBytes += socket.bytesRead;
      });
      // Whoever uses the socket hears of its errors; an error after that must not end the process.
      socket.on('error', () => {});
      return socket;
    },
    receivedBytes: () => [...sockets].reduce((sum, { bytesRead }) => sum + bytesRead, closedBytes),
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function pinnedLookup(addresses: readonly IpAddress[]): LookupFunction {
  const all = addresses.map(({ text, family }) => ({ address: text, family }));
  return (_name, { all: wantsAll }, done) => {
    if (wantsAll) done(null, all);
    else done(null, all[0]!.address, all[0]!.family);
  };
}
