/**
 * The keyring of a running server, and its rotation: a new key becomes active, and every data key is sealed by it. The old keys
 * stay in the keyring, because backups that were made before need them, until somebody deletes them; the store needs them no
 * more, so it has checks of those keys only that seal something in it. A rotation that a crash interrupts can be repeated,
 * because each record names the key that seals it.
 */
import { AppError, notFound } from '#src/core/errors.ts';
import { keyChecks } from '#storage/datasources.ts';
import { SYSTEM } from '#storage/keys.ts';
import type { Store } from '#storage/store.ts';
import {
  hasKeyring,
  type Keyring,
  KeyringError,
  protectKeyring,
  readKeyring,
  withNewKey,
  withoutKey,
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

  /** Seals everything with the active key; the other keys stay for backups. A call during a rotation waits for that one. */
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
    this.#store.write((tx) => {
      for (const id of this.#ring.keys.keys()) if (id !== this.#ring.active) tx.remove(keyChecks, SYSTEM, id);
    });
    await this.#store.durable();
  }

  /**
   * Deletes a key: backups that need it cannot be opened with this keyring any more. Rejects with `not_found`, and with
   * `key_in_use` while the key is active or seals something.
   */
  async delete(keyId: string): Promise<void> {
    await this.#rotation;
    await this.#store.durable(); // what is sealed by it is then listed
    if (!this.#ring.keys.has(keyId)) throw notFound();
    const isActive = keyId === this.#ring.active;
    if (isActive || listSealedBy(this.#store, keyId, 1).length > 0)
      throw new AppError(
        'key_in_use',
        `The key ${keyId} ${isActive ? 'encrypts new connections' : 'still encrypts connections'}. Rotate the keys first.`,
      );
    // The store is written first: a keyring that lacks a key which the store names could not be opened.
    this.#store.write((tx) => tx.remove(keyChecks, SYSTEM, keyId));
    await this.#store.durable();
    const rest = withoutKey(this.#ring, keyId);
    writeKeyring(this.#path, rest);
    this.#ring = rest;
  }

  async #storeKeyChecks(): Promise<void> {
    this.#store.write((tx) => {
      for (const [id, key] of this.#ring.keys) {
        const isNeeded = id === this.#ring.active || listSealedBy(this.#store, id, 1).length > 0;
        if (isNeeded && tx.get(keyChecks, SYSTEM, id) === undefined)
          tx.put(keyChecks, createKeyCheck(key), SYSTEM, id);
      }
    });
    await this.#store.durable();
  }
}
