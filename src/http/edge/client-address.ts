/**
 * The address of the client: that of the connection or, when a trusted proxy has connected, the address that the proxy saw. Proxies
 * append to `X-Forwarded-For`, so the list is read from its end: the first address that is not a trusted proxy is the client.
 * Entries before it come from the client and are not read.
 */

import { type IpAddress, parseAddress } from '#src/core/ip-address.ts';
import { Networks } from '#src/core/ip-networks.ts';
import type { WireRequest, WireResponse } from '../wire-exchange.ts';

/** The most proxies that are skipped. In a longer chain the client is the last address that was examined. */
const MAX_PROXIES = 16;

export type ClientAddressOf = (res: WireResponse, req: WireRequest) => string;

/** Returns a function that finds the client of a request. `trusted` are addresses and networks such as `10.0.0.0/8`. */
export function createClientAddress(trusted: readonly string[]): ClientAddressOf {
  const ofConnection = (res: WireResponse) =>
    parseAddress(Buffer.from(res.getRemoteAddressAsText()).toString('latin1'));
  if (trusted.length === 0) return (res) => ofConnection(res)?.text ?? '';
  const proxies = new Networks(trusted);
  const isProxy = (address: IpAddress) => proxies.contains(address);
  return (res, req) => {
    const peer = ofConnection(res);
    if (peer === undefined) return '';
    return isProxy(peer) ? forwardedFor(peer, req.getHeader('x-forwarded-for'), isProxy).text : peer.text;
  };
}

/**
 * Returns the client that a chain of proxies names. If the chain names none, returns the last proxy
 * whose entry could be read.
 */
function forwardedFor(peer: IpAddress, header: string, isProxy: (address: IpAddress) => boolean): IpAddress {
  let nearest = peer;
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
