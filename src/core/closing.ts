/** Things that were opened one after the other, to be closed in the opposite order, each once. */
export class Closing implements AsyncDisposable {
  readonly #resources: (AsyncDisposable | Disposable)[] = [];

  /** Takes over a resource and answers it. */
  use<T extends AsyncDisposable | Disposable>(resource: T): T {
    this.#resources.push(resource);
    return resource;
  }

  /** Closes everything, also when closing one of them fails; then throws the first failure. */
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
