/**
 * The kernel hosts of a server with workers: the usual host, which lives as long as the server, and a host that has loaded only
 * marimo, which runs while a worker needs it.
 */
import type { KernelHost } from '#src/confined/processes/host/kernel-host.ts';
import type { HostParts } from '#src/confined/processes/host/kernel-host-options.ts';
import type { StarterOf } from '#src/confined/processes/host/zygote-process.ts';
import type { HostOrder, HostReport } from '../messages.ts';
import { HostRelay } from './host-relay.ts';

export interface SharedHostsOptions {
  readonly makeHost: (preload: boolean, options: HostParts) => KernelHost;
  /** Whether the usual host preloads common libraries. */
  readonly preload: boolean;
  readonly tell: (worker: number, report: HostReport) => void;
  /** Returns the function that starts a host; default: as a process of this machine. */
  readonly starterOf?: StarterOf | undefined;
}

export class SharedHosts implements AsyncDisposable {
  /** The usual host. Its first user starts it. */
  readonly usual: KernelHost;
  readonly #usualRelay: HostRelay;
  readonly #plainRelay: HostRelay;
  readonly #makePlain: () => KernelHost;
  #plain: KernelHost | undefined;
  #plainEnd: Promise<void> = Promise.resolve();
  #isDisposed = false;

  constructor({ makeHost, preload, tell, starterOf }: SharedHostsOptions) {
    this.#usualRelay = new HostRelay('usual', tell, starterOf?.('usual'));
    this.#plainRelay = new HostRelay('plain', tell, starterOf?.('plain'));
    const { start: startZygote, proved: onProof } = this.#usualRelay;
    this.usual = makeHost(preload, { startZygote, proves: true, onProof });
    this.#makePlain = () => makeHost(false, { startZygote: this.#plainRelay.start });
  }

  take(worker: number, order: HostOrder): void {
    if (order.host === 'usual') this.#usualRelay.take(worker, order);
    else {
      this.#plainRelay.take(worker, order);
      this.#startOrEndPlain();
    }
  }

  /** Kills the children of a worker that has ended. */
  forget(worker: number): void {
    this.#usualRelay.forget(worker);
    this.#plainRelay.forget(worker);
    this.#startOrEndPlain();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    await this.#plainEnd;
    await Promise.all([this.usual[Symbol.asyncDispose](), this.#plain?.[Symbol.asyncDispose]()]);
  }

  #startOrEndPlain(): void {
    const { isWanted } = this.#plainRelay;
    if (isWanted && this.#plain === undefined) this.#startPlain();
    else if (!isWanted && this.#plain !== undefined) {
      const host = this.#plain;
      this.#plain = undefined;
      this.#plainEnd = host[Symbol.asyncDispose]();
    }
  }

  #startPlain(): void {
    const host = this.#makePlain();
    this.#plain = host;
    this.#plainEnd
      .then(() => (this.#plain === host && !this.#isDisposed ? host.start() : undefined))
      .catch((error: unknown) => {
        if (this.#plain === host) this.#plain = undefined;
        this.#plainRelay.failed(error instanceof Error ? error.message : String(error));
      });
  }
}
