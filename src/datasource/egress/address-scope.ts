/**
 * Classifies IP addresses by their number alone: this machine, a private network, the internet, or
 * an address that must never be reached.
 */
import { type IpAddress, parseAddress } from '#src/base/net/ip-address.ts';
import { Networks } from '#src/base/net/ip-networks.ts';

/** `forbidden` addresses are never reached, even if the operator allows them. */
export type AddressScope = 'forbidden' | 'loopback' | 'private' | 'public';

const FORBIDDEN = new Networks([
  '0.0.0.0/8', // unspecified: the system connects to this machine instead
  '169.254.0.0/16', // link-local, and the metadata service of most clouds
  '100.100.100.200/32', // metadata service of Alibaba
  '168.63.129.16/32', // metadata service of Azure
  '192.0.0.192/32', // metadata service of Oracle
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
  '::/128',
  'fe80::/10', // link-local
  'fec0::/10', // site-local, long withdrawn
  'ff00::/8', // multicast
  'fd00:ec2::254/128', // metadata service of AWS
  'fd20:ce::254/128', // metadata service of Google
  '64:ff9b:1::/48', // NAT64 with a local prefix: the position of the IPv4 address in it is unknown
  '2001::/32', // Teredo: a tunnel, whose IPv4 address is obfuscated
]);
const LOOPBACK = new Networks(['127.0.0.0/8', '::1/128']);
const PRIVATE = new Networks([
  '10.0.0.0/8',
  '100.64.0.0/10',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  'fc00::/7',
]);

/**
 * Returns the scope of an address. `own` are the addresses of this machine. They count as loopback, because they lead
 * to this machine, too.
 */
export function scopeOf(address: IpAddress, own: ReadonlySet<string>): AddressScope {
  if (FORBIDDEN.contains(address)) return 'forbidden';
  const embedded = embeddedIn(address);
  if (embedded !== undefined && scopeOf(embedded, own) !== 'public') return 'forbidden';
  if (LOOPBACK.contains(address) || own.has(address.text)) return 'loopback';
  return PRIVATE.contains(address) ? 'private' : 'public';
}

/** Returns the IPv4 address inside a transition address, which is the real destination; undefined when there is none. */
function embeddedIn({ family, bytes, text }: IpAddress): IpAddress | undefined {
  if (family === 4) return undefined;
  const startsWith = (...start: number[]) => start.every((byte, at) => bytes[at] === byte);
  const at = (offset: number) => parseAddress(bytes.slice(offset, offset + 4).join('.'));
  if (startsWith(0x20, 0x02)) return at(2); // 6to4
  if (startsWith(0, 0x64, 0xff, 0x9b)) return at(12); // NAT64
  if (startsWith(0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0)) return at(12); // translated
  if (startsWith(...Array<number>(12).fill(0)) && text !== '::1' && text !== '::') return at(12); // compatible
  const isIsatap = (bytes[8]! & 0xfd) === 0 && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe;
  return isIsatap ? at(12) : undefined;
}
