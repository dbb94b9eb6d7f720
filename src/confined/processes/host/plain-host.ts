/**
 * A kernel host that has only marimo loaded, for kernels whose packages replace libraries that the
 * main host has loaded. It starts on first use, and ends when it has had no kernel for a while.
 */

import { unawaited } from '#src/base/async/unawaited.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { Kernel, KernelLaunch, KernelSink } from '../kernel/kernel.ts';
import type { KernelHost } from './kernel-host.ts';

const IDLE_MS = 10 * 60_000;

export class PlainHost implements AsyncDisposable {
  readonly #make: () => KernelHost;
  #host: KernelHost | undefined;
  #started: Promise<unknown> | undefined;
  #kernels = 0;
  #idle: NodeJS.Timeout | undefined;
  #isDisposed = false;

  constructor(make: () => KernelHost) {
    this.#make = make;
  }

  /** Resolves when kernels can be started. Rejects when they cannot. */
  async ready(): Promise<this> {
    if (this.#isDisposed) throw new Error('The server is stopping.');
    if (this.#host === undefined) {
      this.#host = this.#make();
      this.#started = this.#host.start();
    }
    clearTimeout(this.#idle);
    await this.#started;
    return this;
  }

  startKernel(launch: KernelLaunch, sink: KernelSink): Kernel {
    invariant(this.#host !== undefined, 'The plain kernel host starts before its kernels.', launch.id);
    clearTimeout(this.#idle);
    this.#kernels++;
    return this.#host.startKernel(launch, {
      ready: (info) => sink.ready(info),
      messages: (batch) => sink.messages(batch),
      exited: (exit) => {
        if (--this.#kernels === 0)
          this.#idle = setTimeout(
            () => unawaited(this.#end(), 'plain-host: the end of the plain kernel host'),
            IDLE_MS,
          ).unref();
        sink.exited(exit);
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    await this.#end();
  }

  async #end(): Promise<void> {
    clearTimeout(this.#idle);
    const host = this.#host;
    this.#host = undefined;
    this.#started = undefined;
    await host?.[Symbol.asyncDispose]();
  }
}
