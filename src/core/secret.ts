import { inspect } from 'node:util';

const HIDDEN = '[secret]';

/** A value that must not be seen by accident: printing, logging, serialising and cloning it give `[secret]`, never it. */
export class Secret {
  readonly #value: string;
  constructor(value: string) {
    this.#value = value;
  }
  /** The value itself. Call it where the value is used, and do not keep the answer. */
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
