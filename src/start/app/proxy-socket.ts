/**
 * The unix socket on which the server listens for a proxy of this machine (`TROUPE_LISTEN_SOCKET`). Everybody who can connect to it
 * is believed about the client's address, so notebook code must not be able to. Its kernels may have the user of the server, and
 * without namespaces they see the file. So the mode gives the right to connect to the group alone: Linux then refuses the owner even
 * if the owner is a member of the group, and also a root without capabilities, as kernels of root are.
 */
import { chmodSync, chownSync, closeSync, constants, lstatSync, openSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import type { Config } from '#src/base/config/config.ts';
import { OperatorError, systemFailure } from '#src/base/errors/operator-error.ts';
import { errorNameOf } from '#src/base/errors/system-error.ts';
import { loadFileLock } from '#src/base/os/file-lock.ts';
import { groupIdOf } from '#src/base/os/group.ts';
import { bindPath } from '#src/base/os/listening-socket.ts';

const GROUP_MAY_CONNECT = 0o060;
/** Opening a pipe would wait for a reader, and a link could name any file. */
const LOCK_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export interface ProxySocket extends Disposable {
  /** A bound socket. It refuses clients until a process listens on it. */
  readonly descriptor: number;
  /** Removes the file. Does not close the descriptor. Idempotent. */
  [Symbol.dispose](): void;
}

/** Returns whether notebook code shares the network of this machine, so that its connections come from this machine's addresses. */
export function sharesNetwork({
  kernelNodes,
  kernelNetwork,
  kernelConfinement,
}: Pick<Config, 'kernelNodes' | 'kernelNetwork' | 'kernelConfinement'>): boolean {
  return kernelNodes === 'none' && (kernelNetwork === 'host' || kernelConfinement === 'off');
}

/**
 * Binds the socket of the settings; resolves with undefined when they name none. Replaces the file of a server that has ended.
 * Rejects with one line when another program listens there, or the system refuses.
 */
export async function openProxySocket({
  listenSocket: path,
  listenSocketGroup: group,
}: Pick<Config, 'listenSocket' | 'listenSocketGroup'>): Promise<ProxySocket | undefined> {
  if (path === undefined) return undefined;
  const lock = process.platform === 'linux' ? await loadFileLock() : undefined;
  if (lock === undefined)
    throw new OperatorError('TROUPE_LISTEN_SOCKET is not supported on this system.', 'Unset it.');
  const groupId = group === undefined ? undefined : await findGroup(group);
  const claim = openLock(path);
  try {
    if (!lock(claim)) throw inUse(path);
    await removeStale(path);
    const descriptor = await bindPath(path).catch((error: unknown) => {
      throw systemFailure(`The socket ${path} (TROUPE_LISTEN_SOCKET) cannot be made`, error);
    });
    try {
      if (groupId !== undefined) giveTo(path, groupId, group);
      chmodSync(path, GROUP_MAY_CONNECT);
    } catch (error) {
      closeSync(descriptor);
      rmSync(path);
      throw error;
    }
    let isOurs = true;
    return {
      descriptor,
      [Symbol.dispose]() {
        if (!isOurs) return;
        isOurs = false;
        rmSync(path, { force: true });
        closeSync(claim);
      },
    };
  } catch (error) {
    closeSync(claim);
    throw error;
  }
}

/** Opens the lock file next to the socket. The server that has its lock owns the socket. */
function openLock(path: string): number {
  const lock = `${path}.lock`;
  if (lstatSync(lock, { throwIfNoEntry: false })?.isFile() === false)
    throw new OperatorError(
      `The file ${lock} beside the socket (TROUPE_LISTEN_SOCKET) is not an ordinary file.`,
      'Set TROUPE_LISTEN_SOCKET to another path.',
    );
  return attempt(path, () => openSync(lock, LOCK_FLAGS, 0o600));
}

async function findGroup(group: string): Promise<number> {
  const id = /^\d+$/.test(group) ? Number(group) : await groupIdOf(group);
  if (id !== undefined) return id;
  throw new OperatorError(
    `The group ${group} (TROUPE_LISTEN_SOCKET_GROUP) does not exist.`,
    `Create it (groupadd --system ${group}), and add the user of the proxy to it.`,
  );
}

function giveTo(path: string, groupId: number, group: string | undefined): void {
  try {
    chownSync(path, process.getuid!(), groupId);
  } catch (cause) {
    throw new OperatorError(
      `The socket ${path} cannot be given to the group ${group} (TROUPE_LISTEN_SOCKET_GROUP).`,
      'Make the user of the server a member of the group (SupplementaryGroups= in its unit).',
      cause,
    );
  }
}

/** Removes the socket of a server that has ended. Rejects when something else is there. */
async function removeStale(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket())
    throw new OperatorError(
      `The file ${path} (TROUPE_LISTEN_SOCKET) is not a socket.`,
      'Set TROUPE_LISTEN_SOCKET to another path.',
    );
  if (await isListenedOn(path)) throw inUse(path);
  attempt(path, () => rmSync(path));
}

/**
 * Resolves with whether a program listens on the socket. The program is not a Troupe server, because that
 * would hold the lock.
 */
function isListenedOn(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    // A program with more waiting connections than it takes listens, too.
    socket
      .once('connect', () => resolve(true))
      .once('error', (error) => resolve(errorNameOf(error) === 'EAGAIN'));
    socket.once('connect', () => socket.destroy());
  });
}

function inUse(path: string): OperatorError {
  return new OperatorError(
    `Another program listens on the socket ${path} (TROUPE_LISTEN_SOCKET).`,
    'Stop that program (ss -lxp shows it), or set TROUPE_LISTEN_SOCKET to another path.',
  );
}

function attempt<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw systemFailure(`The socket ${path} (TROUPE_LISTEN_SOCKET) cannot be made`, error);
  }
}
