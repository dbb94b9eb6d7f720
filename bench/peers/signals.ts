/** Named moments that a caller may wait for. A moment that no caller waits for is forgotten. */
export class Signals {
  readonly #waiting = new Map<string, (at: number) => void>();

  /** Resolves with the time of the next moment of this name. Only one may wait for a name. */
  next(name: string): Promise<number> {
    return new Promise((resolve) => this.#waiting.set(name, resolve));
  }

  /** Reports that the moment has come. */
  give(name: string, at: number): void {
    const resolve = this.#waiting.get(name);
    this.#waiting.delete(name);
    resolve?.(at);
  }

  /** Returns the awaited value. */
  names(): readonly string[] {
    return [...this.#waiting.keys()];
  }
}
