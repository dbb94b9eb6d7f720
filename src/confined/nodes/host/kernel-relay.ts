/**
 * The way of one kernel's bytes: its unix socket on this machine, and a TLS connection to the server. Each end is read only as fast
 * as the other takes bytes. When either end closes, the other one closes too, and the kernel is killed.
 */
import type { Socket } from 'node:net';
import { connect, type SecureContext, type TLSSocket } from 'node:tls';
import type { PeerProcess } from '#src/base/os/peer-process.ts';
import { FrameSender } from '../../processes/frame-sender.ts';
import { KernelDoor } from '../../processes/kernel-door.ts';
import { sendLine, tune } from '../protocol.ts';
import { InterruptWatch } from './interrupt-watch.ts';

/** How long the last bytes of a dead kernel may take. A process that a cell started may keep its socket open for ever. */
const LAST_BYTES_MS = 5000;
const NOTHING = Buffer.alloc(0);

export interface KernelRelayOptions {
  readonly id: string;
  readonly token: string;
  /** The unix socket at which the kernel connects. */
  readonly path: string;
  readonly server: { readonly host: string; readonly port: number };
  readonly context: SecureContext;
  readonly peers: PeerProcess;
  /** Called when the kernel has got a frame that announces SIGINT. */
  readonly announced: () => void;
  /** Called once, when the connection cannot be made or has ended. `isByKernel`: the kernel has closed its end first. */
  readonly ended: (isByKernel: boolean) => void;
}

export class KernelRelay implements Disposable {
  readonly #options: KernelRelayOptions;
  readonly #door: KernelDoor;
  readonly #server: TLSSocket;
  #kernel: Socket | undefined;
  #hasKernelClosed = false;
  #isEnded = false;

  /** Begins to connect to the server at once, while the kernel is forked. */
  constructor(options: KernelRelayOptions) {
    this.#options = options;
    const { id, token, server, context, peers } = options;
    // The certificate names no machine, because the authority certifies one server only.
    this.#server = connect({
      ...server,
      secureContext: context,
      minVersion: 'TLSv1.3',
      checkServerIdentity: () => undefined,
    });
    tune(this.#server);
    this.#server.pause();
    this.#server.on('error', () => undefined); // 'close' follows
    this.#server.once('secureConnect', () => sendLine(this.#server, { op: 'kernel', id, token }));
    this.#server.once('close', () => this[Symbol.dispose]());
    this.#door = new KernelDoor(token, peers, (socket, rest) => this.#join(socket, rest));
  }

  /** Resolves when the kernel may connect. */
  listen(): Promise<void> {
    return this.#door.listen(this.#options.path);
  }

  /** Sets the process of the kernel. */
  expect(pid: number): void {
    this.#door.expect(pid);
  }

  /** Signals the kernel through its socket. Returns false when the signal cannot reach the kernel in this way. */
  signal(signal: number): boolean {
    return this.#kernel !== undefined && this.#options.peers.signal(this.#kernel, signal);
  }

  /** Called when the kernel has ended: its last bytes still go to the server. */
  finish(): void {
    if (this.#kernel === undefined) this[Symbol.dispose]();
    else setTimeout(() => this[Symbol.dispose](), LAST_BYTES_MS).unref();
  }

  [Symbol.dispose](): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#door[Symbol.dispose]();
    this.#server.destroy();
    this.#kernel?.destroy();
    this.#options.ended(this.#hasKernelClosed);
  }

  #join(kernel: Socket, rest: Buffer): void {
    this.#kernel = kernel;
    kernel.on('error', () => undefined); // 'close' follows
    // The last bytes of a kernel still go to the server, which then closes its end.
    kernel.once('close', () => {
      this.#hasKernelClosed = true;
      this.#server.end();
    });
    if (this.#isEnded) {
      kernel.destroy();
      return;
    }
    if (rest.length > 0) this.#server.write(rest);
    kernel.pipe(this.#server);
    this.#server.pipe(kernel);
    const [watch, sender] = [new InterruptWatch(), new FrameSender(() => this[Symbol.dispose]())];
    sender.socket = kernel;
    this.#server.on('data', (bytes) => {
      for (let found = watch.push(bytes); found > 0; found--) sender.send([NOTHING], this.#options.announced);
    });
  }
}
