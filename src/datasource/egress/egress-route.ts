import { connect, type LookupFunction, type Socket } from 'node:net';
import type { IpAddress } from '#src/base/net/ip-address.ts';
import type { AddressScope } from './address-scope.ts';

/**
 * A checked route to one server. Its sockets connect only to the checked addresses, even if the name resolves to others later.
 * Disposing of the route destroys every socket that it made.
 */
export interface EgressRoute extends Disposable {
  /** The host as the connection names it, for certificates and `Host` headers. */
  readonly host: string;
  readonly port: number;
  readonly scope: Exclude<AddressScope, 'forbidden'>;
  /**
   * Returns a socket that is connecting. The route destroys it at the latest when the route itself
   * is disposed of.
   */
  connect(): Socket;
  /** Returns how many bytes all sockets of the route have received. */
  receivedBytes(): number;
}

/** The target of a route with its checked addresses. */
export interface EgressRouteOptions extends Pick<EgressRoute, 'host' | 'port' | 'scope'> {
  /** The addresses that passed the check, at least one, in the order in which they are tried. */
  readonly addresses: readonly IpAddress[];
}

/** Returns a route to these addresses. The caller disposes of it. */
export function openEgressRoute({ host, port, scope, addresses }: EgressRouteOptions): EgressRoute {
  const sockets = new Set<Socket>();
  let closedBytes = 0;
  const lookup = pinnedLookup(addresses);
  return {
    host,
    port,
    scope,
    connect() {
      // Node.js dials an address directly, but asks `lookup` for any name, and `lookup` returns the checked addresses.
      const socket = connect({ host: 'pinned.invalid', port, lookup, noDelay: true, keepAlive: true });
      // TLS checks certificates against `_host` if the driver does not name a host.
      Reflect.set(socket, '_host', host);
      sockets.add(socket);
      socket.once('close', () => {
        sockets.delete(socket);
        closedBytes += socket.bytesRead;
      });
      // The user of the socket handles its errors. A later error without a listener would end the process.
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
