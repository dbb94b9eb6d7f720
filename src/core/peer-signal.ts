/** Signals the process at the other end of a unix socket (unix(7), SO_PEERPIDFD). Node.js has no function for it. */

const SOL_SOCKET = 1;
/** Since Linux 6.5. The same on x64 and arm64. */
const SO_PEERPIDFD = 77;
/** The same on every processor. */
const SYS_PIDFD_SEND_SIGNAL = 424;
const INT_BYTES = 4;

/**
 * Signals the process that connected to the unix socket with this descriptor. Returns false when that process is gone,
 * or when the system refuses the signal or lacks these calls. A socket always leads to the process that connected,
 * whereas a pid may belong to another process by now.
 */
export type PeerSignal = (descriptor: number, signal: number) => boolean;

/** Resolves with the function; on a system without these calls, with one that always returns false. */
export async function loadPeerSignal(): Promise<PeerSignal> {
  if (process.platform !== 'linux') return () => false;
  try {
    const { default: koffi } = await import('koffi');
    const library = koffi.load(null);
    const getsockopt = library.func('int getsockopt(int, int, int, _Out_ int *, _Inout_ uint32_t *)');
    const send = library.func('long syscall(long, int, int, uintptr_t, unsigned int)');
    const close = library.func('int close(int)');
    return (descriptor, signal) => {
      const peer = [-1];
      if (getsockopt(descriptor, SOL_SOCKET, SO_PEERPIDFD, peer, [INT_BYTES]) !== 0) return false;
      const isSent = send(SYS_PIDFD_SEND_SIGNAL, peer[0], signal, 0, 0) === 0;
      close(peer[0]);
      return isSent;
    };
  } catch {
    return () => false;
  }
}
