/**
 * The kernel host of one supervisor as another supervisor of the same process uses it. Both start children in one Python process. A
 * supervisor that ends or gives up the share ends its own children only.
 */
import type { ChildListener, KernelPlace, Zygote } from './zygote-process.ts';

const SIGKILL = 9;

export class SharedZygote implements Zygote {
  readonly ended: Promise<void>;
  readonly #zygote: Zygote;
  readonly #children = new Set<string>();
  #resolveEnded: () => void = () => {};
  #isReleased = false;

  constructor(zygote: Zygote) {
    this.#zygote = zygote;
    const released = new Promise<void>((resolve) => {
      this.#resolveEnded = resolve;
    });
    this.ended = Promise.race([zygote.ended, released]);
  }

  get alive(): boolean {
    return this.#zygote.alive && !this.#isReleased;
  }

  order(
    id: string,
    order: Readonly<Record<string, unknown>>,
    listener: ChildListener,
    where?: KernelPlace,
  ): void {
    this.#children.add(id);
    const over = () => {
      this.#children.delete(id);
      if (this.#isReleased && this.#children.size === 0) this.#resolveEnded();
    };
    this.#zygote.order(
      id,
      order,
      {
        forked: (...report) => listener.forked?.(...report),
        placed: (key) => listener.placed?.(key),
        ended(end) {
          over();
          listener.ended(end);
        },
        refused(reason) {
          over();
          listener.refused(reason);
        },
        lost() {
          over();
          listener.lost();
        },
      },
      where,
    );
  }

  signal(id: string, signal: number): void {
    if (this.#children.has(id)) this.#zygote.signal(id, signal);
  }

  setBusy(id: string, isBusy: boolean): void {
    if (this.#children.has(id)) this.#zygote.setBusy?.(id, isBusy);
  }

  attend(): void {
    this.#zygote.attend?.();
  }

  /** Ends with the last child of this share. */
  stop(): void {
    this.#isReleased = true;
    for (const id of this.#children) this.#zygote.signal(id, SIGKILL);
    if (this.#children.size === 0) this.#resolveEnded();
  }

  kill(): void {
    this.stop();
    this.#resolveEnded();
  }
}
