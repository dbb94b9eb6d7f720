/**
 * Notices of the server to the service manager that started it (sd_notify(3)). They say that the
 * server is ready, that it stops, how far it has come, or that it needs longer. Node.js has no
 * datagrams over unix sockets.
 */

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 0o2000002;
/** MSG_DONTWAIT and MSG_NOSIGNAL: a service manager that does not read its socket must not hold up the server. */
const SEND_FLAGS = 0x4040;

/** Fields of the protocol. */
export interface ServiceNotice {
  readonly READY?: 1;
  readonly STOPPING?: 1;
  /** One line for `systemctl status`. */
  readonly STATUS?: string;
  /** The next notice of this field must come, or the start or the stop must end, within this many microseconds. */
  readonly EXTEND_TIMEOUT_USEC?: number;
}

type Send = (text: string) => void;

/** The socket of the service manager, which watches the process and not an app. */
let path = '';
let sending: Promise<Send | undefined> | undefined;

/** Takes the address of the service manager out of the environment, so that no program which this one starts has it. */
export function takeNotifySocket(): void {
  path = process.env.NOTIFY_SOCKET ?? '';
  delete process.env.NOTIFY_SOCKET;
}

/** Sends a notice; does nothing where no service manager listens. Never rejects. */
export async function notifyServiceManager(notice: ServiceNotice): Promise<void> {
  sending ??= openSocket();
  const send = await sending;
  const fields = Object.entries(notice).map(
    ([name, value]) => `${name}=${String(value).replaceAll('\n', ' ')}`,
  );
  send?.(fields.join('\n'));
}

async function openSocket(): Promise<Send | undefined> {
  if (process.platform !== 'linux' || !/^[/@]./.test(path)) return undefined;
  try {
    const { default: koffi } = await import('koffi');
    const libc = koffi.load(null);
    const socket = libc.func('int socket(int, int, int)');
    const sendTo = libc.func('long sendto(int, const void *, size_t, int, const void *, unsigned int)');
    const address = addressOf(path);
    const descriptor = socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
    return (text) => {
      const bytes = Buffer.from(text);
      sendTo(descriptor, bytes, bytes.length, SEND_FLAGS, address, address.length);
    };
  } catch {
    return undefined;
  }
}

/** Returns a `sockaddr_un`. A path that begins with `@` is in the abstract namespace. */
function addressOf(path: string): Buffer {
  const family = Buffer.alloc(2);
  family.writeUInt16LE(AF_UNIX);
  const isAbstract = path.startsWith('@');
  return Buffer.concat([family, Buffer.from(isAbstract ? `\0${path.slice(1)}` : `${path}\0`)]);
}
