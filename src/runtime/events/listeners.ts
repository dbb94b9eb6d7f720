/** The listeners of one kind of event. */
export class Listeners<Value> {
  readonly #listeners = new Set<(value: Value) => void>();

  /** Adds a listener. Returns a function that removes it. */
  add(listener: (value: Value) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  tell(value: Value): void {
    for (const listener of this.#listeners) listener(value);
  }
}
