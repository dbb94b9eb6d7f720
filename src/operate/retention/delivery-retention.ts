/**
 * Deletes deliveries of hooks whose retention time is over. Each step is one small commit. The home of the workspace writes them, so
 * only it deletes them.
 */
import { firstIdAt, type WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { Delivery } from '#src/contract/wire/hook.ts';
import { deliveryRecords, hookBooks, hookRecords } from '#storage/records/hooks.ts';
import type { Store } from '#storage/store.ts';

/** How many hooks and deliveries one step examines, and as many again of its last hook at most. */
const MAX_EXAMINED = 100;

/** The cursor where the deletion resumes: after this hook, or after this delivery of the next one. */
export interface DeliveriesCursor {
  readonly hookId: string | undefined;
  readonly deliveryId: string | undefined;
}

const FIRST: DeliveriesCursor = { hookId: undefined, deliveryId: undefined };

export class DeliveryRetention {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Deletes some deliveries that were over before `ms` (since 1970). Deliveries that wait stay. Returns where the next step continues;
   * undefined when there are no more. Call it in the home of the workspace.
   */
  deleteBefore(
    workspaceId: WorkspaceId,
    ms: number,
    cursor: DeliveriesCursor = FIRST,
  ): DeliveriesCursor | undefined {
    let { hookId, deliveryId } = cursor;
    for (let examined = 0; examined < MAX_EXAMINED; examined++) {
      const [next] = [...this.#store.list(hookRecords, workspaceId, [], { after: hookId, limit: 1 })];
      if (next === undefined) return undefined;
      const ids = this.#deleteOf(workspaceId, next.id, ms, deliveryId);
      // There may be more of this hook.
      if (ids.length === MAX_EXAMINED) return { hookId, deliveryId: ids.at(-1) };
      examined += ids.length;
      hookId = next.id;
      deliveryId = undefined;
    }
    return { hookId, deliveryId };
  }

  /** Deletes some deliveries of a hook, after the delivery `after`. Returns the ids of those that were examined. */
  #deleteOf(
    workspaceId: WorkspaceId,
    hookId: string,
    ms: number,
    after: string | undefined,
  ): readonly string[] {
    // A delivery that was sent again is over later than its id says, but never earlier.
    const page = { after, until: firstIdAt('delivery', ms), limit: MAX_EXAMINED };
    const found = [...this.#store.list(deliveryRecords, workspaceId, [hookId], page)];
    const before = timestamp(ms);
    const old = found.filter(({ value }) => isOverBefore(value, before));
    if (old.length > 0)
      this.#store.write((tx) => {
        let removed = 0;
        for (const { id } of old) {
          // It may have been removed, or queued again, in a turn that is not committed yet.
          const present = tx.get(deliveryRecords, workspaceId, hookId, id);
          if (present === undefined || !isOverBefore(present, before)) continue;
          tx.remove(deliveryRecords, workspaceId, hookId, id);
          removed++;
        }
        const book = tx.get(hookBooks, workspaceId, hookId);
        if (book !== undefined)
          tx.put(hookBooks, { ...book, stored: book.stored - removed }, workspaceId, hookId);
      });
    return found.map(({ id }) => id);
  }
}

function isOverBefore(bytes: Uint8Array, before: string): boolean {
  const { finishedAt }: Delivery = JSON.parse(Buffer.from(bytes).toString('utf8'));
  return finishedAt !== null && finishedAt < before;
}
