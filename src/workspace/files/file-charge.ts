/** Charges uploads against the quota of their workspace. */
import { invariant } from '#src/base/errors/invariant.ts';

/** File systems allocate space in blocks of this size. */
const BLOCK_BYTES = 4096;

/** The changes of a workspace since its files were counted. */
export interface ChargedAccount {
  /** Bytes and files that requests have stored, minus those that they have deleted. */
  readonly changed: { bytes: number; entries: number };
  /** Bytes and files of uploads under way. */
  readonly held: { bytes: number; entries: number };
}

/**
 * The additional space that a request needs. When the request has ended, `freedBytes` of other space will be free.
 */
export interface Need {
  readonly bytes: number;
  readonly entries: number;
  readonly freedBytes: number;
}

/** The charge of one upload against its workspace's quota. */
export class Charge implements Disposable {
  readonly #account: ChargedAccount;
  readonly #hold: (need: Need) => Promise<void>;
  #bytes = 0;
  #entries = 0;
  #size = 0;
  /** The size of the file that is replaced. */
  #freedBytes = 0;

  constructor(account: ChargedAccount, hold: (need: Need) => Promise<void>) {
    this.#account = account;
    this.#hold = hold;
  }

  /** Charges the name of a folder that is about to be made. Rejects with `file_quota_exceeded`. */
  async folder(): Promise<void> {
    await this.#take(0, 1);
  }

  /**
   * Charges the name of the file. If the file replaces another one, `replacedBytes` is the size of that one: its
   * space will be free, and its name is reused. Rejects as `folder` does.
   */
  async file(replacedBytes: number | undefined): Promise<void> {
    this.#freedBytes = blocksOf(replacedBytes ?? 0);
    if (replacedBytes === undefined) await this.#take(0, 1);
  }

  /** Charges the next bytes of the file. Rejects as `folder` does. */
  async bytes(count: number): Promise<void> {
    this.#size += count;
    const more = blocksOf(this.#size) - this.#bytes;
    if (more > 0) await this.#take(more, 0);
  }

  /** Notes that the file is stored. `replacedBytes` is the size of the file that it replaced; undefined when there was none. */
  settle(replacedBytes: number | undefined): void {
    const { changed } = this.#account;
    changed.bytes += this.#bytes - blocksOf(replacedBytes ?? 0);
    changed.entries += this.#entries;
    this[Symbol.dispose]();
  }

  async #take(bytes: number, entries: number): Promise<void> {
    await this.#hold({ bytes, entries, freedBytes: this.#freedBytes });
    this.#bytes += bytes;
    this.#entries += entries;
  }

  [Symbol.dispose](): void {
    const { held } = this.#account;
    const isHeld = held.bytes >= this.#bytes && held.entries >= this.#entries;
    invariant(isHeld, 'An upload gives back only what is charged for it.');
    held.bytes -= this.#bytes;
    held.entries -= this.#entries;
    this.#bytes = 0;
    this.#entries = 0;
  }
}

/** Returns the space that a file of this size takes on the disk. */
export function blocksOf(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
}
