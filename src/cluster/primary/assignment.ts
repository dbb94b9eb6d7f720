/**
 * Assigns every slot to a worker. Only this class changes the table. A slot moves to another worker only after its owner has
 * ended or has released the slot. A worker serves clients only once all others know of it.
 */
import {
  dealSlots,
  SLOTS,
  type SlotTable,
  withOnly,
  withoutWorker,
  withSlots,
  withWorker,
} from '#src/runtime/homes/slots.ts';
import type { WorkerProcess } from './worker-process.ts';

/** The time after which a worker is asked again for slots that could not move. */
const BALANCE_MS = 5_000;

export class Assignment implements Disposable {
  readonly #workers: ReadonlyMap<number, WorkerProcess>;
  readonly #timer: NodeJS.Timeout;
  #table: SlotTable = { number: 0, workers: [], owners: [] };
  #port = 0;
  /** The move for which a worker was asked. */
  #asked: { readonly from: number; readonly to: number } | undefined;
  /** Workers that had no slot to give when they were last asked. */
  readonly #unable = new Set<number>();

  /** `workers` always contains the workers that have not ended. */
  constructor(workers: ReadonlyMap<number, WorkerProcess>) {
    this.#workers = workers;
    this.#timer = setInterval(() => {
      this.#unable.clear();
      this.#balance();
    }, BALANCE_MS);
  }

  /** Deals the slots out to the first workers, which will serve at the port. */
  deal(port: number): void {
    this.#port = port;
    this.#table = dealSlots([...this.#workers.keys()]);
    for (const worker of this.#workers.values()) worker.since = this.#table.number;
  }

  /**
   * Returns the table with which a worker begins. Only the first workers, or a worker that is alone, begin with slots.
   */
  tableFor(worker: WorkerProcess): SlotTable {
    if (this.#table.workers.length === 0) {
      this.#table = withOnly(this.#table, worker.number);
      worker.since = this.#table.number;
    }
    return this.#table;
  }

  /** Called when a worker answers questions of others. */
  joined(worker: WorkerProcess, known: number): void {
    worker.phase = 'joined';
    worker.known = known;
    if (!this.#table.workers.includes(worker.number)) {
      // All others have ended since this worker got its orders, so no other worker will ever give it a slot.
      const isOnly = this.#table.workers.length === 0;
      this.#publish((isOnly ? withOnly : withWorker)(this.#table, worker.number));
      worker.since = this.#table.number;
    }
    this.#admit();
  }

  /** Called when a worker has a table. */
  knows(worker: WorkerProcess, table: number): void {
    worker.known = table;
    this.#admit();
  }

  /** Called when a worker listens for clients. */
  listening(worker: WorkerProcess): void {
    worker.phase = 'serving';
    this.#balance();
  }

  /**
   * Called with the slots that a worker has released. If the table has changed since, the worker has the slots again and the call
   * is ignored.
   */
  released(worker: WorkerProcess, table: number, slots: readonly number[]): void {
    const to = this.#asked?.to;
    this.#asked = undefined;
    if (slots.length === 0) this.#unable.add(worker.number);
    else if (to !== undefined && table === this.#table.number)
      this.#publish(withSlots(this.#table, slots, to));
    this.#balance();
  }

  /** Called when a worker has ended and is no longer one of `workers`. */
  ended(worker: WorkerProcess): void {
    const { number, heir } = worker;
    if (this.#asked?.from === number || this.#asked?.to === number) this.#asked = undefined;
    if (!this.#table.workers.includes(number)) return;
    const { owners } = this.#table;
    const isLast = this.#table.workers.length === 1;
    // An heir that has ended keeps its last phase. Slots that it got would never move again.
    if (heir?.phase === 'serving' && this.#workers.has(heir.number)) {
      const own = owners.flatMap((owner, slot) => (owner === number ? [slot] : []));
      this.#publish(withoutWorker(withSlots(this.#table, own, heir.number), number));
    } else if (isLast) this.#table = { number: this.#table.number + 1, workers: [], owners };
    else this.#publish(withoutWorker(this.#table, number));
    this.#admit();
    this.#balance();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #publish(table: SlotTable): void {
    this.#table = table;
    for (const worker of this.#workers.values()) {
      if (worker.phase !== 'loading') worker.send({ op: 'table', table });
    }
  }

  #admit(): void {
    for (const worker of this.#workers.values()) {
      if (worker.phase !== 'joined' || !this.#isKnownToAll(worker)) continue;
      worker.phase = 'admitted';
      worker.send({ op: 'admit', port: this.#port });
    }
  }

  #isKnownToAll({ number, since }: WorkerProcess): boolean {
    return this.#table.workers.every(
      (other) => other === number || (this.#workers.get(other)?.known ?? 0) >= since,
    );
  }

  #balance(): void {
    if (this.#asked !== undefined) return;
    const serving = [...this.#workers.values()].filter(
      ({ phase, isRetiring }) => phase === 'serving' && !isRetiring,
    );
    const among = serving.map(({ number }) => number);
    const move = nextMove(this.#table, among, this.#unable);
    if (move === undefined) return;
    this.#asked = move;
    this.#workers.get(move.from)?.send({ op: 'release', count: move.count });
  }
}

export interface Move {
  readonly from: number;
  readonly to: number;
  /** The most slots that may move. */
  readonly count: number;
}

/**
 * Returns the move between workers of `among` that evens out their slots the most. The move takes no slots from workers in
 * `unable`. Returns undefined when every worker has its share or none can give slots.
 */
export function nextMove(
  { owners }: SlotTable,
  among: readonly number[],
  unable: ReadonlySet<number>,
): Move | undefined {
  if (among.length < 2) return undefined;
  const counts = new Map(among.map((worker) => [worker, 0]));
  for (const owner of owners) if (counts.has(owner)) counts.set(owner, counts.get(owner)! + 1);
  const ordered = [...counts].sort(([, a], [, b]) => a - b);
  const [to, fewest] = ordered[0]!;
  const [from, most] = ordered.findLast(([worker]) => !unable.has(worker)) ?? [to, fewest];
  const share = Math.floor(SLOTS / among.length);
  const count = Math.min(share - fewest, most - share);
  return count > 0 ? { from, to, count } : undefined;
}
