/** A kernel whose process is started later. Until then it can only be ended. */
import { invariant } from '#src/base/errors/invariant.ts';
import type { Kernel, KernelSink } from '#src/confined/processes/kernel/kernel.ts';
import { PackageFailure } from './package-failure.ts';

export class WaitingKernel implements Kernel {
  readonly id: string;
  readonly #sink: KernelSink;
  #kernel: Kernel | undefined;
  readonly #over = new AbortController();
  #isPaused = false;

  /**
   * `start` resolves with the kernel, which reports to the given sink. When the signal
   * aborts, no kernel is needed.
   */
  constructor(
    id: string,
    sink: KernelSink,
    start: (sink: KernelSink, signal: AbortSignal) => Promise<Kernel>,
  ) {
    this.id = id;
    this.#sink = sink;
    const own: KernelSink = {
      installing: (step) => {
        if (!this.#isOver) sink.installing?.(step);
      },
      noted: (difference) => sink.noted?.(difference),
      ready: (info) => sink.ready(info),
      messages: (batch) => sink.messages(batch),
      exited: (exit) => this.#end(exit),
    };
    start(own, this.#over.signal).then(
      (kernel) => {
        this.#kernel = kernel;
        if (this.#isOver) kernel.kill();
        else if (this.#isPaused) kernel.pause();
      },
      (error: unknown) => {
        const message =
          error instanceof PackageFailure ? error.message : `The kernel did not start: ${error}`;
        this.#end({ cause: 'kernel_start_failed', code: null, signal: null, message });
      },
    );
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted;
  }

  get pid(): number | null {
    return this.#kernel?.pid ?? null;
  }

  get node(): string | null {
    return this.#kernel?.node ?? null;
  }

  get inFlight(): number | null {
    return this.#kernel?.inFlight ?? null;
  }

  get queuedBytes(): number {
    return this.#kernel?.queuedBytes ?? 0;
  }

  execute(request: Parameters<Kernel['execute']>[0]): number {
    return this.#started().execute(request);
  }
  configure(configs: Parameters<Kernel['configure']>[0]): number {
    return this.#started().configure(configs);
  }
  scratchpad(request: Parameters<Kernel['scratchpad']>[0]): number {
    return this.#started().scratchpad(request);
  }
  findErrors(request: Parameters<Kernel['findErrors']>[0]): number {
    return this.#started().findErrors(request);
  }
  edit(edits: Parameters<Kernel['edit']>[0]): number {
    return this.#started().edit(edits);
  }
  element(command: Parameters<Kernel['element']>[0]): number {
    return this.#started().element(command);
  }
  complete(request: Parameters<Kernel['complete']>[0]): void {
    this.#kernel?.complete(request);
  }
  follow(page: number | null): void {
    this.#kernel?.follow(page);
  }
  answerCall(id: number, parts: readonly (string | Uint8Array)[]): void {
    this.#kernel?.answerCall(id, parts);
  }
  interrupt(): boolean {
    return this.#kernel?.interrupt() ?? false;
  }

  kill(): void {
    if (this.#kernel !== undefined) this.#kernel.kill();
    else this.#endSoon('kernel_killed', 'The server killed the kernel.');
  }
  stop(): void {
    if (this.#kernel !== undefined) this.#kernel.stop();
    else this.#endSoon('stopped', 'The kernel was stopped.');
  }
  pause(): void {
    this.#isPaused = true;
    this.#kernel?.pause();
  }
  resume(): void {
    this.#isPaused = false;
    this.#kernel?.resume();
  }

  #started(): Kernel {
    invariant(this.#kernel !== undefined, 'A kernel gets commands once it is ready.', this.id);
    return this.#kernel;
  }

  /** Called in a later turn than the caller's, as for a kernel that has a process. */
  #endSoon(cause: 'kernel_killed' | 'stopped', message: string): void {
    queueMicrotask(() => this.#end({ cause, code: null, signal: null, message }));
  }

  #end(exit: Parameters<KernelSink['exited']>[0]): void {
    if (this.#isOver) return;
    this.#over.abort();
    this.#sink.exited(exit);
  }
}
