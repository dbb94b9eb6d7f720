/** The addresses of this machine. */
import { networkInterfaces } from 'node:os';
import { type IpAddress, parseAddress } from './ip-address.ts';
import { Networks } from './ip-networks.ts';

/** For how long the list of addresses is used before it is read again. */
const OWN_ADDRESSES_MS = 10_000;
const LOOPBACK = ['127.0.0.0/8', '::1'];

/** Returns the entries of a list of addresses and networks that contain an address of this machine. */
export function entriesOfThisMachine(entries: readonly string[]): string[] {
  const own = [...addressesOfThisMachine(), '127.0.0.1', '::1'].map((text) => parseAddress(text));
  return entries.filter((entry) => {
    const network = new Networks([entry]);
    return own.some((address) => address !== undefined && network.contains(address));
  });
}

/** The addresses of this machine, loopback addresses included. */
export class OwnAddresses {
  readonly #loopback = new Networks(LOOPBACK);
  #addresses: ReadonlySet<string> = new Set();
  #readAtMs = Number.NEGATIVE_INFINITY;

  has(address: IpAddress): boolean {
    if (this.#loopback.contains(address)) return true;
    const nowMs = performance.now();
    if (nowMs - this.#readAtMs > OWN_ADDRESSES_MS) {
      this.#readAtMs = nowMs;
      this.#addresses = new Set(addressesOfThisMachine().map((text) => parseAddress(text)?.text ?? text));
    }
    return this.#addresses.has(address.text);
  }
}

function addressesOfThisMachine(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
}
