import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { KeyringSource } from './keyring.ts';
import { putSealed, readSealed, removeSealed } from './sealed-connections.ts';

/**
 * Single secrets (such as a provider's API key), sealed as connections are, so that a rotation of the keyring includes
 * them. Their names contain a character that no slug has, so they cannot collide with datasources.
 */
export class SecretStore {
  readonly #store: Store;
  readonly #keys: KeyringSource;

  constructor(store: Store, keys: KeyringSource) {
    this.#store = store;
    this.#keys = keys;
  }

  /** Stores a secret in place of any earlier secret with this name. */
  seal(tx: Transaction, workspaceId: string, name: string, key: string): void {
    this.remove(tx, workspaceId, name);
    putSealed(tx, this.#keys.ring, refOf(workspaceId, name), { kind: 'key', key });
  }

  /** Removes a secret, if there is one. */
  remove(tx: Transaction, workspaceId: string, name: string): void {
    removeSealed(tx, refOf(workspaceId, name));
  }

  /** Returns the secret. Throws `UnsealError`. */
  open(workspaceId: string, name: string): string {
    const { key } = readSealed(this.#store, this.#keys, refOf(workspaceId, name));
    if (typeof key !== 'string') throw new Error(`The sealed record ${name} does not hold a key.`);
    return key;
  }
}

function refOf(workspaceId: string, slug: string) {
  return { workspaceId, slug, revision: 1 };
}
