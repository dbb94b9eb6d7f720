/** Which slots should move so that every worker has its share. Only slots in which nothing lives ever do. */
import { SLOTS, type SlotTable } from '../slots.ts';

export interface Move {
  readonly from: number;
  readonly to: number;
  /** The most slots that are to move. */
  readonly count: number;
}

/**
 * Returns the move that evens out the most, between workers of `among` and from none of `unable`; undefined when every
 * worker has its share or none can give slots.
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
