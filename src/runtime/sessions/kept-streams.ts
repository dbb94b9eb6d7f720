/** How long the stream of a session without followers is kept for followers that come back. */
const KEPT_MS = 5 * 60_000;
/** The memory that kept streams of one kind of session may take in a process. Beyond this, the oldest streams are dropped. */
const MAX_KEPT_BYTES = 16 * 2 ** 20;
/** The approximate memory of a stream in addition to its events. */
const STREAM_BYTES = 4096;

interface KeptStream {
  readonly bytes: number;
  readonly timer: NodeJS.Timeout;
}

/**
 * Decides which streams without followers stay in memory. Each stream stays for five minutes, as long as all together fit into a
 * number of bytes.
 */
export class KeptStreams {
  readonly #dropped: (key: string) => void;
  readonly #maxBytes: number;
  /** The oldest first. */
  readonly #kept = new Map<string, KeptStream>();
  #bytes = 0;

  /** `dropped` is called when a stream is no longer kept, because its time is over or the kept streams take too many bytes. */
  constructor(dropped: (key: string) => void, maxBytes = MAX_KEPT_BYTES) {
    this.#dropped = dropped;
    this.#maxBytes = maxBytes;
  }

  has(key: string): boolean {
    return this.#kept.has(key);
  }

  /** Keeps a stream whose events take this many bytes, from now on. */
  add(key: string, eventBytes: number): void {
    this.delete(key);
    const bytes = eventBytes + STREAM_BYTES;
    const timer = setTimeout(() => this.#drop(key), KEPT_MS).unref();
    this.#kept.set(key, { bytes, timer });
    this.#bytes += bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#drop(oldest);
    }
  }

  /** Stops keeping a stream, without calling `dropped`. */
  delete(key: string): void {
    const kept = this.#kept.get(key);
    if (kept === undefined) return;
    clearTimeout(kept.timer);
    this.#kept.delete(key);
    this.#bytes -= kept.bytes;
  }

  #drop(key: string): void {
    this.delete(key);
    this.#dropped(key);
  }
}
