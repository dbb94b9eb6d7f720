/**
 * The assignment of workspaces, notebooks and conversations to workers. Each of these objects belongs to one of 256 slots. A slot
 * has one worker, which makes all decisions about the objects in the slot. Only the primary changes the table of slots; a newer
 * table has a higher number.
 */

export const SLOTS = 256;

/** The subject of a home: a notebook or conversation (`id`) of a workspace; without `id`, the workspace itself. */
export interface Home {
  readonly workspaceId: string;
  readonly id?: string | undefined;
}

/** The owner of each slot. */
export interface SlotTable {
  /** Increases with every change. */
  readonly number: number;
  /** The living workers, including those without a slot. */
  readonly workers: readonly number[];
  /** For each slot, the number of the worker that owns it. */
  readonly owners: readonly number[];
}

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/**
 * Returns the slot of a notebook or conversation (`id`) of a workspace, or of the workspace when `id` is absent. The slot is the
 * FNV-1a hash of the ids, which is the same in every process.
 */
export function slotOf(workspaceId: string, id?: string): number {
  let hash = hashed(FNV_OFFSET, workspaceId);
  if (id !== undefined) hash = hashed(hash, `/${id}`);
  return (hash ^ (hash >>> 8) ^ (hash >>> 16) ^ (hash >>> 24)) & (SLOTS - 1);
}

function hashed(start: number, text: string): number {
  let hash = start;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), FNV_PRIME);
  return hash;
}

/** Returns the first table: the slots are dealt out evenly, in the order of `workers`. */
export function dealSlots(workers: readonly number[]): SlotTable {
  const owners = Array.from({ length: SLOTS }, (_, slot) => workers[slot % workers.length]!);
  return { number: 1, workers, owners };
}

/** Returns the table with a started worker in addition, which owns no slots yet. */
export function withWorker({ number, workers, owners }: SlotTable, worker: number): SlotTable {
  return { number: number + 1, workers: [...workers, worker], owners };
}

/** Returns the table after all other workers have ended, in which one worker owns all slots. */
export function withOnly({ number }: SlotTable, worker: number): SlotTable {
  return { number: number + 1, workers: [worker], owners: Array.from({ length: SLOTS }, () => worker) };
}

/**
 * Returns the table without a worker that has ended. Its slots go to the workers with the fewest slots. At least one worker must
 * be left.
 */
export function withoutWorker(table: SlotTable, gone: number): SlotTable {
  const workers = table.workers.filter((worker) => worker !== gone);
  const counts = new Map(workers.map((worker) => [worker, 0]));
  for (const owner of table.owners) if (counts.has(owner)) counts.set(owner, counts.get(owner)! + 1);
  const owners = table.owners.map((owner) => {
    if (owner !== gone) return owner;
    const [heir, count] = [...counts].reduce((least, other) => (other[1] < least[1] ? other : least));
    counts.set(heir, count + 1);
    return heir;
  });
  return { number: table.number + 1, workers, owners };
}

/** Returns the table in which `slots`, which their owners have given up, belong to `worker`. */
export function withSlots(table: SlotTable, slots: readonly number[], worker: number): SlotTable {
  const owners = [...table.owners];
  for (const slot of slots) owners[slot] = worker;
  return { ...table, number: table.number + 1, owners };
}
