/** What one upload takes of the quota of its workspace, while it is under way and afterwards. */

/** File systems give out blocks of this size. */
const BLOCK_BYTES = 4096;

/** What has changed of a workspace since its files were counted. */
export interface ChargedAccount {
  /** What requests have stored, less what they have deleted. */
  readonly changed: { bytes: number; entries: number };
  /** What uploads that are under way have taken. */
  readonly held: { bytes: number; entries: number };
}

/** What a request needs in addition; `freedBytes` will be free once it has ended. */
export interface Need {
  readonly bytes: number;
  readonly entries: number;
  readonly freedBytes: number;
}

/** What one upload takes of its workspace's quota. */
export class Charge implements Disposable {
  readonly #account: ChargedAccount;
  readonly #hold: (need: Need) => Promise<void>;
  #bytes = 0;
  #entries = 0;
  #size = 0;
  /** What the file that is replaced takes. */
  #freedBytes = 0;

  constructor(account: ChargedAccount, hold: (need: Need) => Promise<void>) {
    this.#account = account;
    this.#hold = hold;
  }

  /** Takes the name of a folder that is about to be made. Rejects with `file_quota_exceeded`. */
  async folder(): Promise<void> {
    await this.#take(0, 1);
  }

  /** Takes the name of the file, unless one of so many bytes is replaced, which will be free. Rejects as `folder` does. */
  async file(replacedBytes: number | undefined): Promise<void> {
    this.#freedBytes = blocksOf(replacedBytes ?? 0);
    if (replacedBytes === undefined) await this.#take(0, 1);
  }

  /** Takes what the next bytes of the file need. Rejects as `folder` does. */
  async bytes(count: number): Promise<void> {
    this.#size += count;
    const more = blocksOf(this.#size) - this.#bytes;
    if (more > 0) await this.#take(more, 0);
  }

  /** Notes that the file is stored, in place of one with so many bytes; undefined when there was none. */
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
    this.#account.held.bytes -= this.#bytes;
    this.#account.held.entries -= this.#entries;
    this.#bytes = 0;
    this.#entries = 0;
  }
}

/** Returns what a file of this size takes on the disk. */
export function blocksOf(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
}
