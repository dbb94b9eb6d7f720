/** A stack of open resources, which are disposed of in reverse order, like TC39's `AsyncDisposableStack`. */
export class Closing implements AsyncDisposable {
  readonly #resources: (AsyncDisposable | Disposable)[] = [];

  /** Takes ownership of a resource and returns it. */
  use<T extends AsyncDisposable | Disposable>(resource: T): T {
    this.#resources.push(resource);
    return resource;
  }

  /** Disposes of every resource once, even if some of them fail, then throws the first failure. */
  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = [];
    for (const resource of this.#resources.splice(0).reverse()) {
      try {
        if (Symbol.asyncDispose in resource) await resource[Symbol.asyncDispose]();
        else resource[Symbol.dispose]();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
