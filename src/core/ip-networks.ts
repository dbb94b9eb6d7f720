/** Lists of IP addresses and networks. */
import { BlockList } from 'node:net';
import { type IpAddress, parseAddress } from './ip-address.ts';

/** Returns a list of addresses and networks, such as `10.0.0.0/8`. Entries that are neither are skipped. */
export function networks(entries: readonly string[]): BlockList {
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

/** Returns whether the list contains the address. */
export function contains(list: BlockList, address: IpAddress): boolean {
  return list.check(address.text, familyOf(address));
}

function familyOf({ family }: IpAddress): 'ipv4' | 'ipv6' {
  return family === 4 ? 'ipv4' : 'ipv6';
}
