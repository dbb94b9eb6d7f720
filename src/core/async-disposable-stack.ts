/**
 * Resources that were opened one after the other, disposed in the opposite order, each once. It has the members of
 * TC39's `AsyncDisposableStack` that are used here, because Node.js 20 does not have that class.
 */
export class AsyncDisposableStack implements AsyncDisposable {
  readonly #resources: (AsyncDisposable | Disposable)[] = [];

  /** Takes ownership of a resource and returns it. */
  use<T extends AsyncDisposable | Disposable>(resource: T): T {
    this.#resources.push(resource);
    return resource;
  }

  /** Calls `dispose` when the stack is disposed. */
  defer(dispose: () => void): void {
    this.#resources.push({ [Symbol.dispose]: dispose });
  }

  /** Disposes all resources, even when disposing one of them fails; then throws the first failure. */
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
