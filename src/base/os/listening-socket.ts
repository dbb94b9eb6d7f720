/**
 * Sockets that Node.js and uWebSockets.js cannot make: a listening socket that several processes of this server share, a unix
 * socket whose file gets its mode before it listens, and a socket that only keeps an address from other programs.
 *
 * The processes share one socket by inheriting it, and never one port by SO_REUSEPORT: notebook code has the server's user id,
 * so it could join such a port and have the system send it all connections. Linux only.
 */
import { lookup } from 'node:dns/promises';
import { closeSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { getSystemErrorName } from 'node:util';
import { openDescriptors } from './descriptors.ts';

const [AF_UNIX, AF_INET, AF_INET6] = [1, 2, 10];
const SOCK_STREAM_CLOEXEC_NONBLOCK = 0o2004001;
const O_CLOEXEC = 0o2000000;
const [SOL_SOCKET, SO_REUSEADDR, SO_ACCEPTCONN] = [1, 2, 30];
const [IPPROTO_IPV6, IPV6_V6ONLY] = [41, 26];
/** The lengths of `sockaddr_in` and `sockaddr_in6`, and the place of the address in each. */
const SHAPE = { bytes: 16, address: 4 };
const SHAPE_6 = { bytes: 28, address: 8 };
const PORT_OFFSET = 2;
const INT_BYTES = 4;
/** Connections that wait to be accepted by any of the processes; the system may allow fewer (net.core.somaxconn). */
const BACKLOG = 4096;

export interface BoundSocket {
  readonly descriptor: number;
  /** The requested port, or the one that the system chose for port 0. */
  readonly port: number;
}

/** An address on which this process could not listen. `code` is the system's error code, such as `EADDRINUSE`. */
class BindError extends Error {
  readonly code: string;

  constructor(call: string, code: string) {
    super(`${call} ${code}`);
    this.code = code;
  }
}

/**
 * Binds a socket on which processes that inherit it can listen. Until one of them listens, clients
 * are refused. Throws a `BindError`, or the error of the lookup when `host` is an unknown name.
 */
export async function bindListener(host: string, port: number): Promise<BoundSocket> {
  const { bind } = await loadSockets();
  return bind(await addressOf(host), port, true);
}

/**
 * Binds a unix socket at `path`, where no file may be, and returns its descriptor. Until a process listens on it
 * (`listenOnInherited`), clients are refused. Throws a `BindError`.
 */
export async function bindPath(path: string): Promise<number> {
  return (await loadSockets()).bindPath(path);
}

/**
 * Keeps other programs from listening on `port` at addresses that clients of this machine may use
 * in place of the server's own, because `localhost` is both 127.0.0.1 and ::1. It occupies the
 * loopback address of either family or, where the server listens on all addresses of one family,
 * all addresses of the other. These sockets refuse clients. Resolves with the addresses that
 * another program has; addresses that the machine lacks are no danger. The sockets stay open until
 * this process ends.
 */
export async function holdOtherFamily(host: string, port: number): Promise<string[]> {
  const own = await addressOf(host);
  const others = own === '0.0.0.0' ? ['::'] : own === '::' ? [] : ['127.0.0.1', '::1'];
  const { bind, setOption } = await loadSockets();
  return others.filter((address) => {
    if (address === own) return false;
    try {
      // This socket does not listen. Because it lacks SO_REUSEADDR, no other socket can listen on
      // its address, not even one with that option.
      setOption(bind(address, port).descriptor, SOL_SOCKET, SO_REUSEADDR, 0);
      return false;
    } catch (error) {
      return error instanceof BindError && error.code === 'EADDRINUSE';
    }
  });
}

/**
 * Makes an inherited socket queue connections for all processes that accept from it. From then on,
 * no other program of this user can listen in its place. Rejects with a `BindError`.
 */
export async function listenOnInherited(descriptor: number): Promise<void> {
  (await loadSockets()).listen(descriptor, BACKLOG);
}

/**
 * A listening socket that this process has inherited. Neither Node.js nor uWebSockets.js can accept
 * from such a socket. So they listen on a port of their own, and the inherited socket replaces the
 * socket of that port before the event loop watches it.
 */
export interface InheritedListener {
  /**
   * Replaces another descriptor of this process by the inherited socket. Call it in the turn that
   * opened the other one.
   */
  replace(descriptor: number): void;
  /** Occupies the address with a socket that accepts no connections. */
  silence(descriptor: number): void;
  /** Returns the descriptor of this process that listens at a port of 127.0.0.1. */
  find(port: number): number;
}

export async function loadInheritedListener(descriptor: number): Promise<InheritedListener> {
  const { replace, socket, addressAt, isListening } = await loadSockets();
  let silent: number | undefined;
  return {
    replace: (target) => replace(descriptor, target),
    silence(target) {
      silent ??= socket(AF_INET);
      replace(silent, target);
    },
    find(port) {
      const name = socketAddress('127.0.0.1', port);
      const found = openDescriptors()
        .sort((a, b) => a - b)
        .find((one) => addressAt(one)?.equals(name) === true && isListening(one));
      if (found === undefined) throw new Error(`No descriptor of this process listens on port ${port}.`);
      return found;
    },
  };
}

/** The functions of the system, loaded once for the process. */
let loaded: ReturnType<typeof load> | undefined;

function loadSockets(): ReturnType<typeof load> {
  loaded ??= load();
  return loaded;
}

/** Resolves with the system's calls. */
async function load() {
  const { default: koffi } = await import('koffi');
  const libc = koffi.load(null);
  const call = {
    socket: libc.func('int socket(int, int, int)'),
    setOption: libc.func('int setsockopt(int, int, int, const int *, unsigned int)'),
    getOption: libc.func('int getsockopt(int, int, int, void *, void *)'),
    bind: libc.func('int bind(int, const void *, unsigned int)'),
    listen: libc.func('int listen(int, int)'),
    nameOf: libc.func('int getsockname(int, void *, void *)'),
    dup3: libc.func('int dup3(int, int, int)'),
  };
  const check = (name: string, result: number): number => {
    if (result < 0) throw new BindError(name, getSystemErrorName(-koffi.errno()));
    return result;
  };
  const socket = (family: number): number =>
    check('socket', call.socket(family, SOCK_STREAM_CLOEXEC_NONBLOCK, 0));
  const setOption = (descriptor: number, level: number, option: number, value: number): number =>
    check('setsockopt', call.setOption(descriptor, level, option, [value], INT_BYTES));
  const addressAt = (descriptor: number): Buffer | undefined => {
    const name = Buffer.alloc(SHAPE_6.bytes);
    const length = Uint32Array.of(name.length);
    return call.nameOf(descriptor, name, length) < 0 ? undefined : name.subarray(0, length[0]);
  };
  return {
    socket,
    setOption,
    addressAt,
    replace: (source: number, target: number) => {
      check('dup3', call.dup3(source, target, O_CLOEXEC));
    },
    listen: (descriptor: number, backlog: number) => {
      check('listen', call.listen(descriptor, backlog));
    },
    isListening(descriptor: number): boolean {
      const value = Int32Array.of(0);
      const isKnown =
        call.getOption(descriptor, SOL_SOCKET, SO_ACCEPTCONN, value, Uint32Array.of(INT_BYTES)) === 0;
      return isKnown && value[0] === 1;
    },
    bindPath(path: string): number {
      const descriptor = socket(AF_UNIX);
      try {
        const name = Buffer.from(`\0\0${path}\0`);
        name.writeUInt16LE(AF_UNIX, 0);
        check('bind', call.bind(descriptor, name, name.length));
        return descriptor;
      } catch (error) {
        closeSync(descriptor);
        throw error;
      }
    },
    bind(address: string, port: number, isDual = false): BoundSocket {
      const descriptor = socket(isIPv6(address) ? AF_INET6 : AF_INET);
      try {
        setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
        if (isIPv6(address)) setOption(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, isDual ? 0 : 1);
        const name = socketAddress(address, port);
        check('bind', call.bind(descriptor, name, name.length));
        return { descriptor, port: addressAt(descriptor)!.readUInt16BE(PORT_OFFSET) };
      } catch (error) {
        closeSync(descriptor);
        throw error;
      }
    },
  };
}

/** Returns the address that uWebSockets.js would choose. */
async function addressOf(host: string): Promise<string> {
  const found = await lookup(host, { all: true });
  return (found.find(({ family }) => family === 6) ?? found[0]!).address;
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
