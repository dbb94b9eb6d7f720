/**
 * One installation for which several callers wait, in one workspace or in several. It waits until an installation may
 * begin, and is aborted when the last caller has left.
 */
import type { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import { untilAborted } from '#src/base/async/until-aborted.ts';
import { PackageFailure } from './package-failure.ts';

/** Called with the present step, in words for people. */
export type Progress = (text: string) => void;

type Install<T> = (progress: Progress, signal: AbortSignal) => Promise<T>;

export class SharedInstallation<T> {
  readonly #places: FairSemaphore;
  readonly #install: Install<T>;
  /**
   * The workspaces that wait for their turn to install. The first turn that one of them gets is used for this
   * installation.
   */
  readonly #workspaces = new Set<string>();
  readonly #abandoned = new AbortController();
  readonly #listeners = new Set<{ readonly tell: Progress }>();
  readonly #result: Promise<T>;
  #settle: (result: Promise<T>) => void = () => {};
  #hasBegun = false;
  #text = 'preparing';

  /** `install` is called in the turn of the first workspace that waits, and ends early when its signal aborts. */
  constructor(places: FairSemaphore, install: Install<T>) {
    this.#places = places;
    this.#install = install;
    this.#result = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#result.catch(() => {}); // when no caller waits any more, no other code handles the failure
  }

  /** Whether the installation is abandoned, so that nobody can wait for it any more. */
  get isAbandoned(): boolean {
    return this.#abandoned.signal.aborted;
  }

  /**
   * Resolves with the installed packages. Rejects as the installation does, and with a `PackageFailure` when `signal`
   * aborts.
   */
  async wait(workspaceId: string, tell: Progress, signal: AbortSignal): Promise<T> {
    const listener = { tell };
    this.#listeners.add(listener);
    tell(this.#text);
    this.#lineUp(workspaceId);
    try {
      return await untilAborted(this.#result, signal, { reason: abandoned });
    } finally {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#abandoned.abort();
    }
  }

  #lineUp(workspaceId: string): void {
    if (this.#hasBegun || this.#workspaces.has(workspaceId)) return;
    this.#workspaces.add(workspaceId);
    if (!this.#places.hasRoom(workspaceId)) this.#tell('waiting for other installations');
    // The failure is reported by `#result`.
    this.#places.pass(workspaceId, () => this.#begin()).catch(() => {});
  }

  /** Installs in the first of its turns. Later turns end at once. */
  async #begin(): Promise<void> {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const result = this.#install((text) => this.#tell(text), this.#abandoned.signal);
    this.#settle(result);
    await result;
  }

  #tell(text: string): void {
    this.#text = text;
    for (const listener of this.#listeners) listener.tell(text);
  }
}

/** Returns the failure of an installation that was broken off because nobody waits for it. */
export function abandoned(): PackageFailure {
  return new PackageFailure('Nobody waits for the packages any more.', true);
}
