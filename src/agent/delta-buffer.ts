export type DeltaKind = 'text-delta' | 'reasoning-delta';

/**
 * Joins what a model says within one turn of the event loop: one event instead of one for each token. `flush` gives at
 * once what is waiting, in order; it is called before anything else is told.
 */
export class DeltaBuffer {
  readonly #tell: (kind: DeltaKind, text: string) => void;
  #kind: DeltaKind = 'text-delta';
  #text = '';
  #isDue = false;

  constructor(tell: (kind: DeltaKind, text: string) => void) {
    this.#tell = tell;
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
    this.#tell(this.#kind, text);
  }

  /** What is waiting is not told any more. */
  drop(): void {
    this.#text = '';
  }
}
