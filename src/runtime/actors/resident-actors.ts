/**
 * The actors of all workers that own something alive, such as a kernel. Limits of the whole server count these actors. The list
 * is in the store, for the counted kinds. A server of one process needs no list, because it has all actors in memory.
 */

import { SYSTEM } from '#storage/keys.ts';
import { residentActors } from '#storage/records/actor-snapshots.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { ActorOwners } from './actor-owners.ts';
import type { Address } from './address.ts';

export class ResidentActors {
  readonly #store: Store;
  readonly #owners: ActorOwners;

  constructor(store: Store, owners: ActorOwners) {
    this.#store = store;
    this.#owners = owners;
  }

  /** Stores whether an actor owns something such as a kernel, in the same commit as its move. */
  note(tx: Transaction, { kind, workspaceId, id }: Address, isResident: boolean): void {
    const { own } = this.#owners;
    if (own === undefined) return;
    if (isResident) tx.put(residentActors, own, SYSTEM, kind, workspaceId, id);
    else tx.remove(residentActors, SYSTEM, kind, workspaceId, id);
  }

  /**
   * Returns the residents of the other workers. In a shared turn the result cannot change, and residents of dead workers are
   * removed.
   */
  elsewhere(kind: string): Address[] {
    const { own } = this.#owners;
    if (own === undefined) return [];
    this.#store.refreshShared(); // sessions also wake without a request
    const found: Address[] = [];
    const left: Address[] = [];
    for (const ids of this.#store.listKeys(residentActors, SYSTEM, [kind], Number.POSITIVE_INFINITY)) {
      const [, workspaceId = '', id = ''] = ids;
      const owner = this.#store.get(residentActors, SYSTEM, ...ids);
      if (owner === undefined || owner === own) continue;
      const isLiving = this.#owners.livesElsewhere(owner);
      (isLiving ? found : left).push({ kind, workspaceId: workspaceId as Address['workspaceId'], id });
    }
    if (left.length > 0 && this.#store.mayDecide && !this.#store.isReadOnly) {
      this.#store.write((tx) => {
        for (const address of left) this.note(tx, address, false);
      });
    }
    return found;
  }
}
