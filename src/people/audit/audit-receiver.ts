/** The receivers of the audit: a file, or a syslog receiver over TCP, UDP or a stream socket. */
import { createSocket } from 'node:dgram';
import { open } from 'node:fs/promises';
import { connect, isIP, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type { AuditEntry } from '#src/contract/wire/audit.ts';

/** An entry, with the workspace in whose audit it is. */
export interface ForwardedEntry extends AuditEntry {
  readonly workspaceId: string;
}

/** Takes entries, one batch after the other. */
export interface AuditReceiver {
  /**
   * Resolves once the receiver has the entries, if its protocol confirms that, or else once they are sent. Rejects
   * when it lacks some of them.
   */
  send(entries: readonly ForwardedEntry[]): Promise<void>;
  close(): void;
}

/** Returns the receiver, which connects when there is something to send. */
export function openReceiver(target: string): AuditReceiver {
  if (target.startsWith('unix:')) return new StreamReceiver(() => connect(target.slice('unix:'.length)));
  const [, protocol, name = '', port = ''] = /^(tcp|udp):\/\/(.+):(\d+)$/.exec(target) ?? [];
  const host = name.replace(/^\[(.*)\]$/, '$1');
  if (protocol === 'udp') return new DatagramReceiver(host, Number(port));
  if (protocol === 'tcp') return new StreamReceiver(() => connect({ host, port: Number(port) }));
  return new FileReceiver(target);
}

const NEWLINE = 10;

/** Appends lines of JSON. The file is opened for each batch, so it may be moved or emptied between batches. */
class FileReceiver implements AuditReceiver {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async send(entries: readonly ForwardedEntry[]): Promise<void> {
    await using file = await open(this.#path, 'a+', 0o600);
    const { size } = await file.stat();
    const last = Buffer.alloc(1, NEWLINE);
    if (size > 0) await file.read(last, 0, 1, size - 1);
    // If the server was killed while it wrote a line, the end of the line is missing; the entry is written again.
    const begin = last[0] === NEWLINE ? '' : '\n';
    await file.appendFile(begin + entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
    await file.datasync();
  }

  close(): void {}
}

const SEND_LIMIT_MS = 10_000;
/** TCP reports a lost receiver only after something was sent to it. */
const SETTLE_MS = 500;

/** Sends frames of RFC 6587 (octet counting) over a stream. */
class StreamReceiver implements AuditReceiver {
  readonly #connect: () => Socket;
  #socket: Socket | undefined;

  constructor(makeSocket: () => Socket) {
    this.#connect = makeSocket;
  }

  async send(entries: readonly ForwardedEntry[]): Promise<void> {
    const frames = entries.map(syslogMessage).map((message) => `${Buffer.byteLength(message)} ${message}`);
    this.#socket ??= this.#open();
    const socket = this.#socket;
    const failed = new Promise<never>((_, reject) => {
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('The receiver has closed the connection.')));
    });
    failed.catch(() => undefined);
    const written = new Promise<void>((resolve) => {
      socket.write(frames.join(''), () => resolve());
    });
    const limit = new AbortController();
    try {
      const late = pause(SEND_LIMIT_MS, undefined, { signal: limit.signal, ref: false }).then(() => {
        throw new Error('The receiver does not accept data.');
      });
      late.catch(() => undefined);
      await Promise.race([written, failed, late]);
      await Promise.race([pause(SETTLE_MS, undefined, { ref: false }), failed]);
    } catch (error) {
      this.close();
      throw error;
    } finally {
      limit.abort();
      socket.removeAllListeners('error').removeAllListeners('close');
      this.#watch(socket);
    }
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #open(): Socket {
    const socket = this.#connect().unref();
    socket.resume(); // receivers send nothing, but must not fill a buffer
    this.#watch(socket);
    return socket;
  }

  #watch(socket: Socket): void {
    const forget = () => {
      if (this.#socket === socket) this.#socket = undefined;
    };
    socket.on('error', forget);
    socket.on('close', forget);
  }
}

/** The most bytes of a UDP datagram. */
const MAX_DATAGRAM_BYTES = 65_000;

/** Sends a datagram for each entry. Arrival is not confirmed. */
class DatagramReceiver implements AuditReceiver {
  readonly #host: string;
  readonly #port: number;

  constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
  }

  async send(entries: readonly ForwardedEntry[]): Promise<void> {
    const socket = createSocket(isIP(this.#host) === 6 ? 'udp6' : 'udp4').unref();
    try {
      for (const entry of entries) {
        const message = Buffer.from(syslogMessage(entry)).subarray(0, MAX_DATAGRAM_BYTES);
        await new Promise<void>((resolve, reject) => {
          socket.once('error', reject);
          socket.send(message, this.#port, this.#host, (error) => (error ? reject(error) : resolve()));
        });
        socket.removeAllListeners('error');
      }
    } finally {
      socket.close();
    }
  }

  close(): void {}
}

/** The facility `log audit` of RFC 5424. */
const FACILITY = 13;
const SEVERITY = { done: 6, failed: 5, refused: 4 } as const;

/** Returns the entry as a message of RFC 5424, whose text is JSON of ASCII characters only. */
function syslogMessage(entry: ForwardedEntry): string {
  const { createdAt, action, outcome } = entry;
  const head = [
    `<${FACILITY * 8 + SEVERITY[outcome]}>1`,
    createdAt,
    nameOf(hostname(), 255),
    'troupe',
    String(process.pid),
    nameOf(action, 32),
    '-',
  ];
  const json = JSON.stringify(entry).replace(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `${head.join(' ')} ${json}`;
}

/** Returns a field of the head: printable ASCII without spaces. */
function nameOf(text: string, maxLength: number): string {
  return text.replace(/[^\x21-\x7e]/g, '_').slice(0, maxLength) || '-';
}
