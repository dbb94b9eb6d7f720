/** Those who want to be told of one thing. */
export class Listeners<Value> {
  readonly #listeners = new Set<(value: Value) => void>();

  /** Answers what takes the listener out again. */
  add(listener: (value: Value) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  tell(value: Value): void {
    for (const listener of this.#listeners) listener(value);
  }
}
