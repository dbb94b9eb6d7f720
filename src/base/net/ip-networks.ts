/** Lists of IP addresses and networks. */
import { BlockList } from 'node:net';
import { type IpAddress, parseAddress } from './ip-address.ts';

/**
 * A list of addresses and networks. The list is parsed on first use, because the first IPv6 address
 * that Node.js parses takes milliseconds.
 */
export class Networks {
  readonly #entries: readonly string[];
  #list: BlockList | undefined;

  /**
   * `entries` are texts such as `10.0.0.0/8`. A text that is neither an address nor a network is
   * skipped.
   */
  constructor(entries: readonly string[]) {
    this.#entries = entries;
  }

  /** Returns whether the address is in the list. */
  contains(address: IpAddress): boolean {
    this.#list ??= parsed(this.#entries);
    return this.#list.check(address.text, familyOf(address));
  }
}

function parsed(entries: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of entries) {
    const [text = '', bits] = entry.split('/');
    const address = parseAddress(text);
    if (address === undefined) continue;
    const mapped = address.family === 4 && text.includes(':') ? 96 : 0;
    const length = bits === undefined ? address.bytes.length * 8 : Number(bits) - mapped;
    list.addSubnet(address.text, Math.max(0, length), familyOf(address));
  }
  return list;
}

function familyOf({ family }: IpAddress): 'ipv4' | 'ipv6' {
  return family === 4 ? 'ipv4' : 'ipv6';
}
