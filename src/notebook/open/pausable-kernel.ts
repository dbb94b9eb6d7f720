import type { Kernel } from '#src/confined/processes/kernel/kernel.ts';
import type { SessionStream } from '#src/runtime/events/session-stream.ts';

/** The present kernel of an open notebook, if there is one. The kernel is paused while subscribers of the notebook lag. */
export class PausableKernel implements Disposable {
  #kernel: Kernel | undefined;
  #isPressed = false;
  #mayPause = true;
  readonly #ignorePressure: () => void;

  constructor(stream: Pick<SessionStream, 'onPressure'>) {
    this.#ignorePressure = stream.onPressure((isPressed) => {
      this.#isPressed = isPressed;
      this.#applyPressure();
    });
  }

  get present(): Kernel | undefined {
    return this.#kernel;
  }

  /** Takes a kernel. If subscribers lag already, the kernel waits for them. */
  attach(kernel: Kernel): void {
    this.#kernel = kernel;
    this.#applyPressure();
  }

  detach(): void {
    this.#kernel = undefined;
  }

  /** Stops pausing the kernel until `allowPause`: an interrupt does not reach a kernel that waits for its reader. */
  preventPause(): void {
    this.#mayPause = false;
    this.#kernel?.resume();
  }

  allowPause(): void {
    if (this.#mayPause) return;
    this.#mayPause = true;
    this.#applyPressure();
  }

  #applyPressure(): void {
    if (this.#isPressed && this.#mayPause) this.#kernel?.pause();
    else this.#kernel?.resume();
  }

  [Symbol.dispose](): void {
    this.#ignorePressure();
  }
}
