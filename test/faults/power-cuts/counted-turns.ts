/**
 * Writes turns to a store, each with a number and records that a seed determines, so that the whole content of the store after every
 * turn is known. As a script it is the process that writes: its arguments are the directory of the store, the log, the seed, and the
 * first and the last turn.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { defineRecord } from '#storage/codec.ts';
import { openStore } from '#storage/open-store.ts';
import type { Store } from '#storage/store.ts';
import { SeededRandom } from '#test/support/random.ts';
import { LogNotes } from '#test/support/store/write-log.ts';

export const TURNS_SCRIPT = fileURLToPath(import.meta.url);

const lastTurn = defineRecord<number>('cut-turn', 1);
const cutRecords = defineRecord<string>('cut-record', 1);
const PARTITIONS = ['ws_one', 'ws_two'];
const IDS = 300;

interface Change {
  readonly partition: string;
  readonly id: string;
  /** Null removes the record. */
  readonly text: string | null;
}

function* changesOf(seed: number, turn: number): Generator<Change> {
  const random = new SeededRandom(seed * 100_003 + turn);
  for (let left = 1 + random.below(12); left > 0; left--) {
    const partition = random.pick(PARTITIONS);
    const id = `r${random.below(IDS)}`;
    const isLarge = random.is(0.1);
    const length = isLarge ? random.below(40_000) : random.below(600);
    yield { partition, id, text: random.is(0.3) ? null : `${turn} `.padEnd(length, id) };
  }
}

/** Knows the contents of the store after each turn. */
export class CountedTurns {
  /** The states of each record, with the turns that made them, in order. */
  readonly #states = new Map<string, { readonly turn: number; readonly text: string | null }[]>();

  constructor(seed: number, turns: number) {
    for (let turn = 1; turn <= turns; turn++) {
      for (const { partition, id, text } of changesOf(seed, turn)) {
        const key = `${partition}/${id}`;
        const states = this.#states.get(key) ?? [];
        this.#states.set(key, states);
        states.push({ turn, text });
      }
    }
  }

  /** Returns the faults of a store that must have all turns up to `acknowledged`, and may have further turns up to `begun`. */
  problemOf(store: Store, acknowledged: number, begun: number): string | undefined {
    const turn = store.get(lastTurn, 'ws_one') ?? 0;
    if (turn < acknowledged)
      return `turn ${acknowledged} was acknowledged, and the store ends with turn ${turn}`;
    if (turn > begun) return `turn ${turn} was never begun`;
    let found = 0;
    for (const partition of PARTITIONS) {
      for (const { id, value } of store.list(cutRecords, partition, [], {
        limit: Number.POSITIVE_INFINITY,
      })) {
        found++;
        if (this.#textOf(`${partition}/${id}`, turn) !== value)
          return `record ${id} is not as turn ${turn} left it`;
      }
    }
    const expected = [...this.#states.keys()].filter((key) => this.#textOf(key, turn) !== null).length;
    return found === expected
      ? undefined
      : `turn ${turn} left ${expected} records, and the store has ${found}`;
  }

  #textOf(key: string, turn: number): string | null {
    return this.#states.get(key)?.findLast((state) => state.turn <= turn)?.text ?? null;
  }
}

/** Writes one more turn, and resolves when it is on disk. */
export async function writeAnotherTurn(store: Store, seed: number): Promise<void> {
  writeTurn(store, seed, (store.get(lastTurn, 'ws_one') ?? 0) + 1);
  await store.durable();
}

function writeTurn(store: Store, seed: number, turn: number): void {
  store.write((tx) => {
    tx.put(lastTurn, turn, 'ws_one');
    for (const { partition, id, text } of changesOf(seed, turn)) {
      if (text === null) tx.remove(cutRecords, partition, id);
      else tx.put(cutRecords, text, partition, id);
    }
  });
}

const [, script, path = '', log = '', seed = '', first = '', last = ''] = process.argv;
if (script === TURNS_SCRIPT) {
  const store = await openStore(path, (error) => {
    throw error;
  });
  using notes = new LogNotes(log);
  const random = new SeededRandom(Number(seed));
  for (let turn = Number(first); turn <= Number(last); turn++) {
    notes.begun(String(turn));
    writeTurn(store, Number(seed), turn);
    const durable = store.durable()?.then(() => notes.acknowledged(String(turn)));
    // Turns that end during a commit are committed together.
    if (random.is(0.4)) await durable;
    else await nextTurn();
  }
  await store.durable();
  await store[Symbol.asyncDispose]();
}
