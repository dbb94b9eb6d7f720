/** What an operator sees of a live actor. Event types only: their payloads hold notebook code and prompts. */
export interface Inspected {
  readonly workspaceId: string;
  readonly kind: string;
  readonly id: string;
  readonly machine: string;
  readonly state: unknown;
  /** When it last moved. */
  readonly since: string;
  readonly revision: number;
  readonly lastEvents: readonly { readonly type: string; readonly at: string }[];
}

const TRAIL_LENGTH = 16;

/** The last commands and facts that were sent to an actor. */
export class EventTrail {
  readonly #types: string[] = [];
  readonly #times: number[] = [];
  #next = 0;

  add(type: string): void {
    this.#types[this.#next % TRAIL_LENGTH] = type;
    this.#times[this.#next % TRAIL_LENGTH] = Date.now();
    this.#next++;
  }

  /** Oldest first. */
  list(): { type: string; at: string }[] {
    const from = Math.max(0, this.#next - TRAIL_LENGTH);
    return Array.from({ length: this.#next - from }, (_, i) => {
      const slot = (from + i) % TRAIL_LENGTH;
      return { type: this.#types[slot]!, at: new Date(this.#times[slot]!).toISOString() };
    });
  }
}
