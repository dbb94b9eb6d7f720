/**
 * The keyring of a running server, and its rotation: a new key becomes active, every data key is sealed by it, then the
 * old keys are removed. A rotation that a crash interrupts can be repeated, because each record names the key that seals
 * it, and a key is removed only when it seals nothing any more.
 */

import { keyChecks } from '#storage/datasources.ts';
import { SYSTEM } from '#storage/keys.ts';
import type { Store } from '#storage/store.ts';
import {
  hasKeyring,
  type Keyring,
  KeyringError,
  keepingKeys,
  protectKeyring,
  readKeyring,
  withNewKey,
  writeKeyring,
} from './keyring.ts';
import { createKeyCheck, matchesKeyCheck } from './keyring-check.ts';
import { listSealedBy, reseal } from './sealed-connections.ts';

/** A key of the keyring, without the key itself. */
export interface KeyState {
  readonly id: string;
  readonly active: boolean;
  /** How many connections it seals. */
  readonly sealed: number;
}

/** Records that are resealed in one turn of the event loop, so that a rotation does not hold up requests. */
const BATCH = 100;

/** Throws `KeyringError` unless the keyring has every key that the store needs. */
export function requireFittingKeyring(store: Pick<Store, 'list'>, path: string, ring: Keyring): void {
  for (const { id, value } of store.list(keyChecks, SYSTEM, [], { limit: Number.POSITIVE_INFINITY })) {
    const key = ring.keys.get(id);
    if (key !== undefined && matchesKeyCheck(key, value)) continue;
    const why = key === undefined ? `it lacks the key ${id}` : `its key ${id} is another one`;
    throw new KeyringError(
      `The keyring ${path} does not fit this data directory: ${why}.`,
      'Restore the keyring that belongs to this directory, or set TROUPE_KEYRING_FILE to the place where it is.',
    );
  }
}

/** Owns the keyring file and the key checks in the store, which must always fit each other. */
export class KeyringStore {
  readonly #store: Store;
  readonly #path: string;
  #ring: Keyring;
  #rotation: Promise<void> | undefined;

  private constructor(store: Store, path: string, ring: Keyring) {
    this.#store = store;
    this.#path = path;
    this.#ring = ring;
  }

  /**
   * Reads the keyring, or creates one if nothing was ever sealed in this store. Throws `KeyringError`, without writing
   * anything, when the keyring is missing or is not the one that sealed the records.
   */
  static async open(store: Store, path: string): Promise<KeyringStore> {
    const isNew = !hasKeyring(path) && [...store.listKeys(keyChecks, SYSTEM, [], 1)].length === 0;
    if (isNew) writeKeyring(path, withNewKey(undefined));
    const ring = readKeyring(path);
    requireFittingKeyring(store, path, ring);
    protectKeyring(path);
    const opened = new KeyringStore(store, path, ring);
    await opened.#storeKeyChecks();
    return opened;
  }

  get ring(): Keyring {
    return this.#ring;
  }

  /** Returns every key with the number of connections that it seals. */
  states(): KeyState[] {
    return [...this.#ring.keys.keys()].map((id) => ({
      id,
      active: id === this.#ring.active,
      sealed: listSealedBy(this.#store, id, Number.MAX_SAFE_INTEGER).length,
    }));
  }

  /** Adds a key, makes it the active one and returns its id. What is sealed stays sealed by the older keys. */
  async add(): Promise<string> {
    const ring = withNewKey(this.#ring);
    // The file is written first: a store that names a key which the file lacks could not be opened.
    writeKeyring(this.#path, ring);
    this.#ring = ring;
    await this.#storeKeyChecks();
    return ring.active;
  }

  /** Seals everything with the active key and removes the other keys. A call during a rotation waits for that one. */
  rotate(): Promise<void> {
    this.#rotation ??= this.#rotate().finally(() => {
      this.#rotation = undefined;
    });
    return this.#rotation;
  }

  async #rotate(): Promise<void> {
    for (const keyId of this.#ring.keys.keys()) {
      if (keyId === this.#ring.active) continue;
      for (;;) {
        const batch = listSealedBy(this.#store, keyId, BATCH);
        if (batch.length === 0) break;
        this.#store.write((tx) => {
          for (const place of batch) reseal(tx, this.#ring, place);
        });
        await this.#store.durable();
      }
    }
    const kept = keepingKeys(this.#ring, new Set());
    // The store is written first: a keyring that lacks a key which the store names could not be opened.
    this.#store.write((tx) => {
      for (const id of this.#ring.keys.keys()) if (!kept.keys.has(id)) tx.remove(keyChecks, SYSTEM, id);
    });
    await this.#store.durable();
    writeKeyring(this.#path, kept);
    this.#ring = kept;
  }

  async #storeKeyChecks(): Promise<void> {
    this.#store.write((tx) => {
      for (const [id, key] of this.#ring.keys) {
        if (tx.get(keyChecks, SYSTEM, id) === undefined) tx.put(keyChecks, createKeyCheck(key), SYSTEM, id);
      }
    });
    await this.#store.durable();
  }
}
