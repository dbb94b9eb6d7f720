export type DeltaKind = 'text-delta' | 'reasoning-delta';

/**
 * Joins the text that a model sends within one turn of the event loop, to publish one event instead of one for each token. `flush`
 * publishes the pending text at once; it is called before any other event is published, which keeps the order.
 */
export class DeltaBuffer {
  readonly #deliver: (kind: DeltaKind, text: string) => void;
  #kind: DeltaKind = 'text-delta';
  #text = '';
  #isDue = false;

  constructor(deliver: (kind: DeltaKind, text: string) => void) {
    this.#deliver = deliver;
  }

  add(kind: DeltaKind, text: string): void {
    if (kind !== this.#kind) this.flush();
    this.#kind = kind;
    this.#text += text;
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.flush();
    });
  }

  flush(): void {
    if (this.#text === '') return;
    const text = this.#text;
    this.#text = '';
    this.#deliver(this.#kind, text);
  }

  /** Discards the waiting text. */
  drop(): void {
    this.#text = '';
  }
}
