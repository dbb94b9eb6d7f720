import type { Store, Transaction } from '#storage/store.ts';
import type { Keyring } from './keyring.ts';
import { putSealed, readSealed, removeSealed } from './sealed-connections.ts';

/**
 * Single keys sealed as connections are, so that a rotation of the keyring covers them. A name has a character that no
 * slug of a datasource has.
 */
export class SecretStore {
  readonly #store: Store;
  readonly #keyring: () => Keyring;

  constructor(store: Store, keyring: () => Keyring) {
    this.#store = store;
    this.#keyring = keyring;
  }

  /** Replaces the one before. */
  seal(tx: Transaction, workspaceId: string, name: string, key: string): void {
    this.remove(tx, workspaceId, name);
    putSealed(tx, this.#keyring(), placeOf(workspaceId, name), { kind: 'key', key });
  }

  remove(tx: Transaction, workspaceId: string, name: string): void {
    removeSealed(tx, placeOf(workspaceId, name));
  }

  /** Throws `UnsealError`. */
  open(workspaceId: string, name: string): string {
    const { key } = readSealed(this.#store, this.#keyring(), placeOf(workspaceId, name));
    if (typeof key !== 'string') throw new Error(`What is sealed as ${name} is no key.`);
    return key;
  }
}

function placeOf(workspaceId: string, slug: string) {
  return { workspaceId, slug, revision: 1 };
}
