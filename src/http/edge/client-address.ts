/**
 * The address of the client: that of the connection or, when a trusted proxy has connected, the address that the proxy saw. Proxies
 * append to `X-Forwarded-For`, so the list is read from its end: the first address that is not a trusted proxy is the client.
 * Entries before it come from the client and are not read.
 *
 * Only proxies can connect to the unix socket for them, so its requests are always read that way. While notebook code has the
 * network of this machine, it connects from every address of this machine, so none of them is a trusted proxy.
 */

import { type IpAddress, parseAddress } from '#src/base/net/ip-address.ts';
import { Networks } from '#src/base/net/ip-networks.ts';
import { OwnAddresses } from '#src/base/net/own-addresses.ts';
import type { WireRequest, WireResponse } from '../wire-exchange.ts';

/** The most proxies that are skipped. In a longer chain the client is the last address that was examined. */
const MAX_PROXIES = 16;

export type ClientAddressOf = (res: WireResponse, req: WireRequest) => string;

export interface ProxyTrust {
  /** Addresses and networks such as `10.0.0.0/8`. */
  readonly trusted: readonly string[];
  /** Whether notebook code has the network of this machine. */
  readonly sharesNetwork: boolean;
}

/** Two functions that find the client of a request. */
export interface ClientAddresses {
  /** For requests that have come over TCP. */
  readonly ofPort: ClientAddressOf;
  /** For requests that have come over the unix socket for proxies. */
  readonly ofProxySocket: ClientAddressOf;
}

/** Returns the functions that find the clients of requests. */
export function createClientAddresses({ trusted, sharesNetwork }: ProxyTrust): ClientAddresses {
  const proxies = new Networks(trusted);
  const own = new OwnAddresses();
  const isProxy = (address: IpAddress) => proxies.contains(address) && !(sharesNetwork && own.has(address));
  return {
    ofPort: (res, req) => {
      const peer = parseAddress(Buffer.from(res.getRemoteAddressAsText()).toString('latin1'));
      if (peer === undefined || trusted.length === 0 || !isProxy(peer)) return peer?.text ?? '';
      return (forwardedFor(req.getHeader('x-forwarded-for'), isProxy) ?? peer).text;
    },
    ofProxySocket: (_res, req) => forwardedFor(req.getHeader('x-forwarded-for'), isProxy)?.text ?? '',
  };
}

/**
 * Returns the client that a chain of proxies names, or else the last proxy with a readable entry; undefined when there is neither.
 */
function forwardedFor(header: string, isProxy: (address: IpAddress) => boolean): IpAddress | undefined {
  let nearest: IpAddress | undefined;
  for (const entry of header.split(',', -1).slice(-MAX_PROXIES).reverse()) {
    const address = parseAddress(withoutPort(entry.trim()));
    if (address === undefined) break;
    nearest = address;
    if (!isProxy(address)) break;
  }
  return nearest;
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(entry: string): string {
  return entry.replace(/^\[(.*)\](:\d+)?$/, '$1').replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1');
}
