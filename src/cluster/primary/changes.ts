/** Waits for facts about things that say when they change. */
export class Changes {
  readonly #checks = new Set<() => void>();

  /** Resolves when `fact` holds, at once or after a change. */
  until(fact: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (!fact()) return;
        this.#checks.delete(check);
        resolve();
      };
      this.#checks.add(check);
      check();
    });
  }

  /** Something has changed. */
  notify(): void {
    for (const check of this.#checks) check();
  }
}
