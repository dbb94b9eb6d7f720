import type { Principal } from '#src/base/caller/principal.ts';
import { notFound } from '#src/base/errors/errors.ts';
import { timestamp } from '#src/base/time/clock.ts';
import { type ModelKeyRecord, modelKeyRecords } from '#storage/records/conversations.ts';
import { workspaceExists } from '#storage/records/identity.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { KeyedProvider } from './model-id.ts';

/**
 * Seals keys and opens them again, with the cipher of the datasources' connections. So a rotation of the
 * keyring covers keys and connections.
 */
export interface KeyVault {
  seal(tx: Transaction, workspaceId: string, name: string, key: string): void;
  remove(tx: Transaction, workspaceId: string, name: string): void;
  open(workspaceId: string, name: string): string;
}

/** Keys of a workspace for providers of models. No request can read a stored key. */
export class ModelKeys {
  readonly #store: Store;
  readonly #vault: KeyVault;

  constructor(store: Store, vault: KeyVault) {
    this.#store = store;
    this.#vault = vault;
  }

  has(workspaceId: string, provider: KeyedProvider): boolean {
    this.#store.refreshShared(); // an agent may ask long after its prompt was sent
    return this.#store.get(modelKeyRecords, workspaceId, provider) !== undefined;
  }

  /** Returns the key, which may be used only in a request to the provider, never in an answer. */
  open(workspaceId: string, provider: KeyedProvider): string | undefined {
    return this.has(workspaceId, provider) ? this.#vault.open(workspaceId, nameOf(provider)) : undefined;
  }

  /** Replaces the earlier key. Throws `not_found` when the workspace has been deleted meanwhile. */
  set({ workspaceId, userId }: Principal, provider: KeyedProvider, key: string): ModelKeyRecord {
    if (!workspaceExists(this.#store, workspaceId)) throw notFound();
    const record = { updatedBy: userId, updatedAt: timestamp() };
    this.#store.write((tx) => {
      this.#vault.seal(tx, workspaceId, nameOf(provider), key);
      tx.put(modelKeyRecords, record, workspaceId, provider);
    });
    return record;
  }

  /** Throws `not_found`. */
  remove(workspaceId: string, provider: KeyedProvider): void {
    if (!this.has(workspaceId, provider)) throw notFound();
    this.#store.write((tx) => {
      this.#vault.remove(tx, workspaceId, nameOf(provider));
      tx.remove(modelKeyRecords, workspaceId, provider);
    });
  }
}

/** Returns a name that no datasource can have, because their slugs contain no colon. */
function nameOf(provider: KeyedProvider): string {
  return `model-key:${provider}`;
}
