/** One installation that several wait for. It is broken off when the last of them has left. */
import { untilAborted } from '#src/core/until-aborted.ts';
import { PackageFailure } from './package-failure.ts';

/** Called with the present step, in words for people. */
export type Progress = (text: string) => void;

export class SharedInstallation<T> {
  readonly #abandoned = new AbortController();
  readonly #listeners = new Set<{ readonly tell: Progress }>();
  readonly #result: Promise<T>;
  #text = 'preparing';

  /** `install` is called at once, and ends early when its signal aborts. */
  constructor(install: (progress: Progress, signal: AbortSignal) => Promise<T>) {
    const tell = (text: string) => {
      this.#text = text;
      for (const listener of this.#listeners) listener.tell(text);
    };
    this.#result = install(tell, this.#abandoned.signal);
    this.#result.catch(() => {}); // once nobody waits, nobody handles its failure
  }

  /** Whether the installation is abandoned, so that nobody can wait for it any more. */
  get isAbandoned(): boolean {
    return this.#abandoned.signal.aborted;
  }

  /**
   * Resolves with the installed packages. Rejects as the installation does, and with a `PackageFailure` when `signal`
   * aborts.
   */
  async wait(tell: Progress, signal: AbortSignal): Promise<T> {
    const listener = { tell };
    this.#listeners.add(listener);
    tell(this.#text);
    try {
      return await untilAborted(this.#result, signal, { reason: abandoned });
    } finally {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#abandoned.abort();
    }
  }
}

/** Returns the failure of an installation that was broken off because nobody waits for it. */
export function abandoned(): PackageFailure {
  return new PackageFailure('Nobody waits for the packages any more.', true);
}
