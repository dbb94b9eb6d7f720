/**
 * A port that this process keeps for others which share it (SO_REUSEPORT): it is bound and does not listen, so that no other
 * program can take it while none of them listens. Node.js has no function for that.
 */
import { lookup } from 'node:dns/promises';
import { isIPv6 } from 'node:net';

const [AF_INET, AF_INET6] = [2, 10];
const SOCK_STREAM_CLOEXEC = 0o2000001;
const [SOL_SOCKET, SO_REUSEPORT] = [1, 15];
/** The lengths of `sockaddr_in` and `sockaddr_in6`, and where the address begins in each. */
const SHAPE = { bytes: 16, address: 4 };
const SHAPE_6 = { bytes: 28, address: 8 };
const PORT_OFFSET = 2;

/**
 * Binds the port, for as long as this process lives. Resolves with it, or with the one that the system chose when it is 0;
 * undefined when the system refuses. Linux only.
 */
export async function reservePort(host: string, port: number): Promise<number | undefined> {
  const found = await lookup(host, { all: true });
  // uWebSockets.js prefers these as well.
  const { address } = found.find(({ family }) => family === 6) ?? found[0]!;
  const { default: koffi } = await import('koffi');
  const libc = koffi.load(null);
  const [socket, setOption, bind, nameOf] = [
    libc.func('int socket(int, int, int)'),
    libc.func('int setsockopt(int, int, int, const int *, unsigned int)'),
    libc.func('int bind(int, const void *, unsigned int)'),
    libc.func('int getsockname(int, void *, void *)'),
  ];
  const name = socketAddress(address, port);
  const descriptor = socket(isIPv6(address) ? AF_INET6 : AF_INET, SOCK_STREAM_CLOEXEC, 0);
  const ok =
    setOption(descriptor, SOL_SOCKET, SO_REUSEPORT, [1], 4) === 0 &&
    bind(descriptor, name, name.length) === 0 &&
    nameOf(descriptor, name, Uint32Array.of(name.length)) === 0;
  return ok ? name.readUInt16BE(PORT_OFFSET) : undefined;
}

function socketAddress(address: string, port: number): Buffer {
  const family = isIPv6(address) ? AF_INET6 : AF_INET;
  const shape = family === AF_INET6 ? SHAPE_6 : SHAPE;
  const name = Buffer.alloc(shape.bytes);
  name.writeUInt16LE(family, 0);
  name.writeUInt16BE(port, PORT_OFFSET);
  addressBytes(address).copy(name, shape.address);
  return name;
}

function addressBytes(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split('.').map(Number));
  // The URL standard writes every address in one way, without an IPv4 part.
  const [head = '', tail] = new URL(`http://[${address.split('%')[0]}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':'));
  const [left, right] = [groups(head), groups(tail ?? '')];
  const all =
    tail === undefined ? left : [...left, ...Array(8 - left.length - right.length).fill('0'), ...right];
  return Buffer.from(all.map((group: string) => group.padStart(4, '0')).join(''), 'hex');
}
