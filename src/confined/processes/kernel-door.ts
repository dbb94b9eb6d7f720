/**
 * The unix socket at which one child of the kernel host connects to the server. It listens until
 * that child has connected. Any process of the same user may try to connect. Only the process that
 * the kernel host has reported is admitted (SO_PEERCRED), after its first frame, the token; other
 * connections are closed. Until it is admitted, a connection gets little time, one of a few places,
 * and no memory beyond that one frame. A child that was refused because all places were taken
 * connects again.
 */
import { timingSafeEqual } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';
import type { PeerProcess } from '#src/base/os/peer-process.ts';
import { framedParts } from './frame-decoder.ts';

const FROM_KERNEL = 0;
/**
 * A child sends its token as soon as it has connected. Only a child that cannot run needs longer.
 */
const GREETING_MS = 10_000;
const MAX_GUESTS = 32;

/** A connection that is not admitted yet. */
interface Guest {
  readonly socket: Socket;
  /** Undefined where the system does not identify the process. */
  readonly pid: number | undefined;
  readonly patience: NodeJS.Timeout;
  readonly read: (bytes: Buffer) => void;
  greeting: Buffer;
}

export class KernelDoor implements Disposable {
  readonly #greeting: Buffer;
  readonly #peers: PeerProcess;
  readonly #admit: (socket: Socket, rest: Buffer) => void;
  readonly #server: Server;
  /** The connections that are not admitted yet, oldest first. */
  readonly #guests = new Set<Guest>();
  #expected: number | undefined;
  #isClosed = false;

  /** `admit` is called once, with the connection of the child and the bytes that followed its token. */
  constructor(token: string, peers: PeerProcess, admit: (socket: Socket, rest: Buffer) => void) {
    this.#greeting = Buffer.concat(framedParts(FROM_KERNEL, [Buffer.from(token)]));
    this.#peers = peers;
    this.#admit = admit;
    this.#server = createServer((socket) => this.#receive(socket));
  }

  /** Resolves when a child may connect; rejects when the path cannot be used. */
  listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      // Without `exclusive` a cluster worker would ask its primary to listen instead.
      this.#server.listen({ path, exclusive: true }, () => resolve());
    });
  }

  /** Sets the process of the child. No connection is admitted before this call. */
  expect(pid: number): void {
    this.#expected = pid;
    for (const guest of this.#guests) this.#consider(guest);
  }

  /** Closes all connections that were not admitted, and removes the path. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    if (this.#server.listening) this.#server.close();
    for (const guest of this.#guests) this.#refuse(guest);
  }

  #receive(socket: Socket): void {
    socket.on('error', () => {}); // 'close' follows and is handled
    const pid = this.#peers.pid(socket);
    if (this.#isClosed || this.#isStranger(pid)) {
      socket.destroy();
      return;
    }
    const patience = setTimeout(() => this.#refuse(guest), GREETING_MS).unref();
    const read = (bytes: Buffer) => this.#read(guest, bytes);
    const guest: Guest = { socket, pid, patience, read, greeting: Buffer.alloc(0) };
    this.#guests.add(guest);
    socket.on('data', guest.read);
    socket.once('close', () => this.#forget(guest));
    const [oldest] = this.#guests;
    if (this.#guests.size > MAX_GUESTS && oldest !== undefined) this.#refuse(oldest);
  }

  #isStranger(pid: number | undefined): boolean {
    return this.#expected !== undefined && pid !== undefined && pid !== this.#expected;
  }

  #read(guest: Guest, bytes: Buffer): void {
    guest.greeting = Buffer.concat([guest.greeting, bytes]);
    if (guest.greeting.length < this.#greeting.length) return;
    guest.socket.pause();
    const token = guest.greeting.subarray(0, this.#greeting.length);
    if (timingSafeEqual(token, this.#greeting)) this.#consider(guest);
    else this.#refuse(guest);
  }

  /** Admits a guest that has sent the token, once its process is known to be the child. */
  #consider(guest: Guest): void {
    if (this.#isStranger(guest.pid)) this.#refuse(guest);
    if (this.#isClosed || this.#expected === undefined || !this.#guests.has(guest)) return;
    if (guest.greeting.length < this.#greeting.length) return;
    this.#forget(guest);
    guest.socket.off('data', guest.read);
    this[Symbol.dispose]();
    this.#admit(guest.socket, guest.greeting.subarray(this.#greeting.length));
  }

  #refuse(guest: Guest): void {
    this.#forget(guest);
    guest.socket.destroy();
  }

  #forget(guest: Guest): void {
    clearTimeout(guest.patience);
    this.#guests.delete(guest);
  }
}
