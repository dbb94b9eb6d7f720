import type { ActorTrailEntry } from '#src/contract/wire/actor.ts';
import { statePath } from './state-path.ts';

const TRAIL_SLOTS = 32;

/**
 * The recent history of one actor: its last 32 events, refused ones included. Noting an event fills a slot of a ring
 * and allocates nothing; texts are made when somebody reads.
 */
export class Trail {
  readonly #types: string[] = [];
  readonly #timesMs: number[] = [];
  readonly #from: unknown[] = [];
  readonly #to: unknown[] = [];
  readonly #refused: (string | undefined)[] = [];
  #state: unknown;
  #count = 0;

  /** The state in which the last noted event left the actor. */
  get state(): unknown {
    return this.#state;
  }

  /** Notes the actor's initial state in memory. */
  begin(state: unknown): void {
    this.#state = state;
  }

  /** Notes an event that the actor took, and the state after it. Returns the state before it. */
  move(type: string, to: unknown): unknown {
    const from = this.#state;
    this.#add(type, to, undefined);
    this.#state = to;
    return from;
  }

  refuse(type: string, code: string): void {
    this.#add(type, this.#state, code);
  }

  /** Returns the noted events, oldest first. */
  list(): ActorTrailEntry[] {
    const from = Math.max(0, this.#count - TRAIL_SLOTS);
    return Array.from({ length: this.#count - from }, (_, i) => {
      const slot = (from + i) % TRAIL_SLOTS;
      const refused = this.#refused[slot];
      return {
        type: this.#types[slot]!,
        at: new Date(this.#timesMs[slot]!).toISOString(),
        from: statePath(this.#from[slot]),
        to: statePath(this.#to[slot]),
        ...(refused === undefined ? {} : { refused }),
      };
    });
  }

  #add(type: string, to: unknown, refused: string | undefined): void {
    const slot = this.#count++ % TRAIL_SLOTS;
    this.#types[slot] = type;
    this.#timesMs[slot] = Date.now();
    this.#from[slot] = this.#state;
    this.#to[slot] = to;
    this.#refused[slot] = refused;
  }
}
