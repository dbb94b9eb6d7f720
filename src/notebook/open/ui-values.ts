import { charsOfValue } from './held-chars.ts';

/** How many values are kept, and how many characters of JSON they have together. */
const MAX_VALUES = 10_000;
const MAX_CHARS = 4 * 2 ** 20;

interface KeptValue {
  readonly value: unknown;
  readonly chars: number;
}

/**
 * The values of UI elements that were set since the kernel started, for pages that open later. The
 * kernel has all values. Beyond the limits the oldest are forgotten here, and a new page shows
 * those elements with their initial values.
 */
export class UiValues {
  readonly #values = new Map<string, KeptValue>();
  #chars = 0;

  set(elementId: string, value: unknown): void {
    this.forget(elementId);
    const chars = elementId.length + charsOfValue(value ?? null);
    if (chars > MAX_CHARS) return;
    this.#values.set(elementId, { value, chars });
    this.#chars += chars;
    for (const oldest of this.#values.keys()) {
      if (this.#chars <= MAX_CHARS && this.#values.size <= MAX_VALUES) return;
      this.forget(oldest);
    }
  }

  get(elementId: string): unknown {
    return this.#values.get(elementId)?.value;
  }

  /** Forgets the values of the elements of a cell, because a cell that runs creates them again. */
  forgetCell(cellId: string): void {
    for (const id of this.#values.keys()) if (id.startsWith(`${cellId}-`)) this.forget(id);
  }

  clear(): void {
    this.#values.clear();
    this.#chars = 0;
  }

  /** Returns the values by the ids of their elements. */
  all(): Record<string, unknown> {
    return Object.fromEntries([...this.#values].map(([id, { value }]) => [id, value]));
  }

  forget(elementId: string): void {
    this.#chars -= this.#values.get(elementId)?.chars ?? 0;
    this.#values.delete(elementId);
  }
}
