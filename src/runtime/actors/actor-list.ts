/** Pages of actors for operators: from memory, in the order of kind and id, with counts by kind and state. */

import type { Actor, ActorCount, ActorPage } from '#src/contract/wire/actor.ts';
import { type Inspectable, inspected } from './inspected-actor.ts';
import { liesIn, statePath } from './state-path.ts';

/** The filters of a list of actors. An absent member does not filter. */
export interface ActorQuery {
  readonly kind?: string | undefined;
  /** The path of a state, which also selects the states within it. */
  readonly state?: string | undefined;
  /** A part of the id of the actor or of a linked actor. Case does not matter. */
  readonly q?: string | undefined;
  readonly after?: string | undefined;
  readonly limit: number;
}

/**
 * Returns a page. The counts are of all actors that `q` matches, of every kind and state. Only the actors of the page
 * are described, so each other actor costs little.
 */
export function listActors(actors: Iterable<Inspectable>, query: ActorQuery): ActorPage {
  const { kind, state, q, after, limit } = query;
  const wanted = q?.toLowerCase();
  const counts = new CountsByState();
  const page = new FirstByKey<Inspectable>(limit + 1);
  for (const actor of actors) {
    if (wanted !== undefined && !mentions(actor, wanted)) continue;
    const path = statePath(actor.state);
    const { kind: own } = actor.address;
    counts.add(own, path);
    if (kind !== undefined && own !== kind) continue;
    if (state !== undefined && !liesIn(path, state)) continue;
    const key = keyOf(actor.address);
    if (after === undefined || key > after) page.add(key, actor);
  }
  const found = page.entries.slice(0, limit);
  return {
    items: found.map(([, actor]) => inspected(actor)),
    nextCursor: page.entries.length > limit ? found.at(-1)![0] : null,
    counts: counts.list(),
  };
}

/** Returns how many actors there are of each kind in each state, in the order of kind and state. */
export function countActors(actors: Iterable<Inspectable>): readonly ActorCount[] {
  const counts = new CountsByState();
  for (const { address, state } of actors) counts.add(address.kind, statePath(state));
  return counts.list();
}

/**
 * Merges the pages that workers have returned for the same query. An actor that moves between workers meanwhile may be in two
 * pages. Then the entry that changed last is kept.
 */
export function mergePages(pages: readonly ActorPage[], limit: number): ActorPage {
  const actors = new Map<string, Actor>();
  for (const actor of pages.flatMap(({ items }) => items)) {
    const key = keyOf(actor);
    const known = actors.get(key);
    if (known === undefined || known.revision < actor.revision) actors.set(key, actor);
  }
  const items = [...actors].sort(byKey).slice(0, limit);
  const hasMore = actors.size > limit || pages.some(({ nextCursor }) => nextCursor !== null);
  return {
    items: items.map(([, actor]) => actor),
    nextCursor: hasMore ? (items.at(-1)?.[0] ?? null) : null,
    counts: mergeCounts(pages.map(({ counts }) => counts)),
  };
}

/** Returns the sums of counts, in the order of kind and state. */
export function mergeCounts(parts: readonly (readonly ActorCount[])[]): readonly ActorCount[] {
  const counts = new CountsByState();
  for (const { kind, state, count } of parts.flat()) counts.add(kind, state, count);
  return counts.list();
}

class CountsByState {
  readonly #kinds = new Map<string, Map<string, number>>();

  add(kind: string, state: string, count = 1): void {
    let states = this.#kinds.get(kind);
    if (states === undefined) {
      states = new Map();
      this.#kinds.set(kind, states);
    }
    states.set(state, (states.get(state) ?? 0) + count);
  }

  list(): readonly ActorCount[] {
    return [...this.#kinds]
      .sort(byKey)
      .flatMap(([kind, states]) => [...states].sort(byKey).map(([state, count]) => ({ kind, state, count })));
  }
}

function keyOf({ kind, id }: Pick<Actor, 'kind' | 'id'>): string {
  return `${kind}/${id}`;
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

function mentions(actor: Inspectable, wanted: string): boolean {
  return (
    actor.address.id.toLowerCase().includes(wanted) ||
    actor.shown().links.some(({ id }) => id.toLowerCase().includes(wanted))
  );
}

/** Of all added entries, keeps the `limit` entries with the smallest keys, in order. */
class FirstByKey<T> {
  readonly entries: [string, T][] = [];
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(key: string, value: T): void {
    const { entries } = this;
    if (entries.length === this.#limit && key >= entries.at(-1)![0]) return;
    let [low, high] = [0, entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (entries[middle]![0] < key) low = middle + 1;
      else high = middle;
    }
    entries.splice(low, 0, [key, value]);
    if (entries.length > this.#limit) entries.pop();
  }
}
