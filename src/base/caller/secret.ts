import { inspect } from 'node:util';

const HIDDEN = '[secret]';

/** Wraps a secret, so that it is not revealed by accident: printing, logging or serialising it gives `[secret]`. */
export class Secret {
  readonly #value: string;
  constructor(value: string) {
    this.#value = value;
  }
  /** Returns the secret. Call it only where the value is used, and do not store the result. */
  reveal(): string {
    return this.#value;
  }
  toString(): string {
    return HIDDEN;
  }
  toJSON(): string {
    return HIDDEN;
  }
  [inspect.custom](): string {
    return HIDDEN;
  }
}
