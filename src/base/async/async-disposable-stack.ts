/**
 * Resources that were opened one after the other. They are disposed in the opposite order, each
 * once. Node.js 20 lacks TC39's `AsyncDisposableStack`, so this class has those of its members that
 * are used here.
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

  /** Disposes all resources, even if one of them fails; then throws the first failure. */
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
