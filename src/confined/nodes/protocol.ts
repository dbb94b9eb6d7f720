/**
 * The messages between a server and its kernel nodes. Both sides are of the same build of the same release.
 *
 * A node makes one connection for orders and reports, and one for each kernel. TLS identifies both sides. The first line of a
 * connection names its purpose:
 *
 *   enrol    a machine with an invitation asks for a certificate
 *   join     a node offers its kernel host; lines of JSON follow in both directions
 *   kernel   the bytes of one kernel follow in both directions, as they would pass through its unix socket; the node sends SIGINT to the
 *            kernel behind each frame that announces it
 */
import type { Socket } from 'node:net';
import { asRecord, asText, isRecord, ShapeError } from '../processes/json-shape.ts';

/** How often the server sends a `ping`, which a node answers, if the last one was answered. */
export const BEAT_MS = 1000;
/** A node ends its kernels this long after its last answer of which it knows that the server has got it. */
export const LEASE_MS = 5000;
/**
 * The server gives up a node that was silent for this long. The time is longer than the lease and the end of
 * the kernels together, so that a session never has two kernels that write files. After a start, the server waits as long for nodes
 * that have not come back, because their kernels may still live.
 */
export const LOST_MS = 7000;
/** How long a connection may take until its first line. */
const GREETING_MS = 10_000;

/**
 * After this time without traffic the system asks the other side of a connection for a sign of life, and ends the connection some ten
 * seconds later: a kernel may be silent for hours, and a firewall on the way may have forgotten its connection.
 */
const KEEP_ALIVE_MS = 15_000;

const MAX_FIRST_LINE_BYTES = 32 * 1024;
/** An order has at most 64 KiB. A report of the use of all kernels may have more. */
const MAX_LINE_BYTES = 512 * 1024;
const NEWLINE = 0x0a;

export type FrameFields = Readonly<Record<string, unknown>>;

/** The facts by which a server and a node of different releases refuse each other. */
export interface Release {
  /** The version of Troupe, for people. */
  readonly version: string;
  /** A digest of the programs of the server and of the node. */
  readonly build: string;
  /** A digest of the scripts of the kernel host. */
  readonly scripts: string;
  readonly marimo: string;
  readonly python: string;
}

/** A machine that offers its kernel host. */
export interface NodeOffer {
  readonly release: Release;
  /** One line that describes the confinement of kernels on the node. */
  readonly confinement: string;
  readonly cores: number;
  readonly memoryBytes: number;
  /** The most kernels at once. */
  readonly capacity: number;
}

/** The condition of a node, with each of its answers to a `ping`. */
export interface NodeCondition {
  readonly freeMemoryBytes: number;
  /** The load average of one minute. */
  readonly load: number;
  /** The reason why the node cannot use the folder of the workspaces; null when the node can use it. */
  readonly filesProblem: string | null;
}

/** The use of one kernel with all its processes. */
export interface NodeKernelUse {
  readonly pid: number;
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
}

/** Returns the difference between two releases in words; null when they are the same. */
export function compareReleases(server: Release, node: Release): string | null {
  const differing = (['version', 'marimo', 'python', 'build', 'scripts'] as const).find(
    (name) => server[name] !== node[name],
  );
  if (differing === undefined) return null;
  if (differing === 'scripts' || differing === 'build') {
    const nameOf = ({ build, scripts }: Release) => `${build}-${scripts}`;
    return (
      `The server has the build ${nameOf(server)} of Troupe ${server.version}, and the node the build ${nameOf(node)}. ` +
      "Install the server's build on the node, from the same package or the same commit, and start the node again."
    );
  }
  const subject = { version: 'Troupe', marimo: 'marimo', python: 'Python' }[differing];
  return `The server has ${subject} ${server[differing]} and the node ${node[differing]}: install the same release on both.`;
}

export function decodeRelease(value: unknown): Release {
  const release = asRecord(value, 'release');
  return {
    version: asText(release.version, 'release.version'),
    build: typeof release.build === 'string' ? release.build : 'unknown', // of a build from before builds had names
    scripts: asText(release.scripts, 'release.scripts'),
    marimo: asText(release.marimo, 'release.marimo'),
    python: asText(release.python, 'release.python'),
  };
}

/** Sets the options of every connection between a server and a node. */
export function tune(socket: Socket): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
}

/** Writes one message. */
export function sendLine(socket: Socket, message: FrameFields): void {
  if (socket.writable) socket.write(`${JSON.stringify(message)}\n`);
}

/**
 * Resolves with the first line of a connection, and with the bytes after it. The socket is paused then. Rejects when the line
 * does not come in time, is too long or is not a message.
 */
export function readFirstLine(
  socket: Socket,
): Promise<{ readonly first: FrameFields; readonly rest: Buffer }> {
  return new Promise((resolve, reject) => {
    let head: Buffer = Buffer.alloc(0);
    const settle = (act: () => void): void => {
      clearTimeout(patience);
      socket.off('data', read).off('close', closed).pause();
      act();
    };
    const fail = (words: string) => settle(() => reject(new ShapeError(words)));
    const closed = () => fail('the connection ended before its first line');
    const patience = setTimeout(() => fail('no first line came in time'), GREETING_MS);
    const read = (bytes: Buffer): void => {
      head = head.length === 0 ? bytes : Buffer.concat([head, bytes]);
      const end = head.indexOf(NEWLINE);
      if (end < 0 && head.length <= MAX_FIRST_LINE_BYTES) return;
      if (end < 0 || end > MAX_FIRST_LINE_BYTES) {
        fail('the first line is too long');
        return;
      }
      settle(() => {
        try {
          resolve({ first: parseLine(head.subarray(0, end)), rest: head.subarray(end + 1) });
        } catch (error) {
          reject(error as Error);
        }
      });
    };
    socket.on('data', read).once('close', closed).resume();
  });
}

/** Calls `take` with each message of a connection; a message that cannot be read or handled ends the connection. */
export function readLines(
  socket: Socket,
  rest: Buffer,
  take: (message: FrameFields) => void,
  onBroken: (error: unknown) => void,
): void {
  let open: Buffer[] = [];
  let openBytes = 0;
  const read = (bytes: Buffer): void => {
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      const line = Buffer.concat([...open, bytes.subarray(start, end)]);
      open = [];
      openBytes = 0;
      start = end + 1;
      try {
        take(parseLine(line));
      } catch (error) {
        onBroken(error);
        socket.destroy();
        return;
      }
    }
    const left = bytes.subarray(start);
    openBytes += left.length;
    if (left.length > 0) open.push(left);
    if (openBytes <= MAX_LINE_BYTES) return;
    onBroken(new ShapeError('a line is too long'));
    socket.destroy();
  };
  socket.on('data', read);
  if (rest.length > 0) read(rest);
  socket.resume();
}

function parseLine(line: Buffer): FrameFields {
  let message: unknown;
  try {
    message = JSON.parse(line.toString('utf8'));
  } catch {
    throw new ShapeError('a line is not JSON');
  }
  if (!isRecord(message) || typeof message.op !== 'string') throw new ShapeError('a line is no message');
  return message;
}
