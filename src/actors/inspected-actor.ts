/** What an operator sees of an actor in memory. Events are shown by type: their members hold code and prompts. */
export interface InspectedActor {
  readonly workspaceId: string;
  readonly kind: string;
  readonly id: string;
  readonly machine: string;
  readonly state: unknown;
  /** When its state last changed. */
  readonly since: string;
  readonly revision: number;
  readonly lastEvents: readonly { readonly type: string; readonly at: string }[];
}

const MAX_RECENT_EVENTS = 16;

/** Remembers the types and times of the last 16 events that one actor received. */
export class RecentEvents {
  readonly #types: string[] = [];
  readonly #timesMs: number[] = [];
  #count = 0;

  add(type: string): void {
    const slot = this.#count % MAX_RECENT_EVENTS;
    this.#types[slot] = type;
    this.#timesMs[slot] = Date.now();
    this.#count++;
  }

  /** Returns the remembered events, oldest first. */
  list(): { type: string; at: string }[] {
    const from = Math.max(0, this.#count - MAX_RECENT_EVENTS);
    return Array.from({ length: this.#count - from }, (_, i) => {
      const slot = (from + i) % MAX_RECENT_EVENTS;
      return { type: this.#types[slot]!, at: new Date(this.#timesMs[slot]!).toISOString() };
    });
  }
}
