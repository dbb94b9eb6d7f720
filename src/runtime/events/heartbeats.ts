/** Receives heartbeats: in each period, `beat` is called once for each of `slots` slots. */
export interface HeartbeatTarget {
  beat(slot: number, slots: number): void;
}

/**
 * A period is divided into slots, so that the server does not write to thousands of subscribers at
 * once.
 */
const SLOTS = 8;

/**
 * The one timer that sends the heartbeats of all streams. It runs only while there are streams, and never keeps the process
 * running.
 */
export class Heartbeats implements Disposable {
  readonly #everyMs: number;
  readonly #streams = new Set<HeartbeatTarget>();
  #timer: NodeJS.Timeout | undefined;
  #slot = 0;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  add(stream: HeartbeatTarget): void {
    this.#streams.add(stream);
    this.#timer ??= setInterval(() => this.#beat(), this.#everyMs / SLOTS).unref();
  }

  delete(stream: HeartbeatTarget): void {
    this.#streams.delete(stream);
    if (this.#streams.size === 0) this[Symbol.dispose]();
  }

  #beat(): void {
    this.#slot = (this.#slot + 1) % SLOTS;
    for (const stream of this.#streams) stream.beat(this.#slot, SLOTS);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
