/** The process at the other end of a unix socket (unix(7), SO_PEERCRED and SO_PEERPIDFD). Node.js has no function for it. */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';

const SOL_SOCKET = 1;
/** The same on x64 and arm64, as SO_PEERPIDFD, which exists since Linux 6.5. */
const SO_PEERCRED = 17;
const SO_PEERPIDFD = 77;
/** This number is the same on every processor. */
const SYS_PIDFD_SEND_SIGNAL = 424;
const INT_BYTES = 4;
/** A `struct ucred`: pid, uid and gid. */
const CREDENTIALS_BYTES = 3 * INT_BYTES;

/** The process that connected to a unix socket, as the system knows it. */
export interface PeerProcess {
  /**
   * Returns the id of the process that connected, as this process would name it. Returns undefined when the connection is
   * closed, and on a system without these calls.
   */
  pid(socket: Socket): number | undefined;
  /**
   * Signals the process that connected. Returns false when that process is gone, or when the system refuses the signal or
   * lacks these calls. A socket always leads to the process that connected, whereas a pid may belong to another process by
   * now.
   */
  signal(socket: Socket, signal: number): boolean;
}

/** Identifies no process. */
export const UNKNOWN_PEERS: PeerProcess = { pid: () => undefined, signal: () => false };

/** Resolves with the functions; on a system without these calls, with `UNKNOWN_PEERS`. */
export async function loadPeerProcess(): Promise<PeerProcess> {
  if (process.platform !== 'linux') return UNKNOWN_PEERS;
  try {
    const { default: koffi } = await import('koffi');
    const library = koffi.load(null);
    const getsockopt = library.func('int getsockopt(int, int, int, _Out_ int *, _Inout_ uint32_t *)');
    const getcredentials = library.func('int getsockopt(int, int, int, _Out_ uint8_t *, _Inout_ uint32_t *)');
    const send = library.func('long syscall(long, int, int, uintptr_t, unsigned int)');
    const close = library.func('int close(int)');
    return {
      pid(socket) {
        const credentials = Buffer.alloc(CREDENTIALS_BYTES);
        const descriptor = descriptorOf(socket);
        if (descriptor === undefined) return undefined;
        const failed = getcredentials(descriptor, SOL_SOCKET, SO_PEERCRED, credentials, [CREDENTIALS_BYTES]);
        return failed === 0 ? credentials.readInt32LE(0) : undefined;
      },
      signal(socket, signal) {
        const peer = [-1];
        const descriptor = descriptorOf(socket);
        if (descriptor === undefined) return false;
        if (getsockopt(descriptor, SOL_SOCKET, SO_PEERPIDFD, peer, [INT_BYTES]) !== 0) return false;
        const isSent = send(SYS_PIDFD_SEND_SIGNAL, peer[0], signal, 0, 0) === 0;
        close(peer[0]);
        return isSent;
      },
    };
  } catch {
    return UNKNOWN_PEERS;
  }
}

/** Returns the id of the parent of a process; undefined when it is gone, or when the system does not show it. */
export function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}

/**
 * Returns the descriptor of a socket, or undefined when it is closed. Node.js keeps it only in the
 * socket's inner handle.
 */
function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as Socket & { readonly _handle?: { readonly fd?: number } | null };
  return handle?.fd === undefined || handle.fd < 0 ? undefined : handle.fd;
}
