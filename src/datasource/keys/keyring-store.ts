/**
 * The keyring of a running server, and its rotation: a new active key, every data key sealed by it, the old keys gone.
 * A rotation goes on where a crash left it, since a record tells which key sealed it; a key leaves the ring only when
 * nothing is sealed by it any more.
 */

import { keyChecks } from '#storage/datasources.ts';
import { SYSTEM } from '#storage/keys.ts';
import type { Store } from '#storage/store.ts';
import {
  hasKeyring,
  type Keyring,
  KeyringError,
  keepingKeys,
  readKeyring,
  withNewKey,
  writeKeyring,
} from './keyring.ts';
import { checkFor, opensCheck } from './keyring-check.ts';
import { listSealedBy, reseal } from './sealed-connections.ts';

export interface KeyState {
  readonly id: string;
  readonly active: boolean;
  /** Connections whose data key it seals. */
  readonly sealed: number;
}

/** Records re-sealed in one turn: a rotation must not hold up requests. */
const BATCH = 100;

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
   * Reads the keyring, or makes one for a store in which nothing was ever sealed. Throws `KeyringError`, having written
   * nothing, when it is missing beside sealed records or is not the one they were sealed with.
   */
  static async open(store: Store, path: string): Promise<KeyringStore> {
    const checks = [...store.list(keyChecks, SYSTEM, [], { limit: Number.POSITIVE_INFINITY })];
    const isNew = checks.length === 0 && !hasKeyring(path);
    if (isNew) writeKeyring(path, withNewKey(undefined));
    const ring = readKeyring(path);
    for (const { id, value } of checks) {
      const key = ring.keys.get(id);
      if (key === undefined || !opensCheck(key, value)) {
        throw new KeyringError(
          `The keyring ${path} does not fit this data directory: it lacks the key ${id}. Restore the right one.`,
        );
      }
    }
    const holder = new KeyringStore(store, path, ring);
    await holder.#noteKeys();
    return holder;
  }

  get ring(): Keyring {
    return this.#ring;
  }

  /** The keys and how many connections each seals. */
  states(): KeyState[] {
    return [...this.#ring.keys.keys()].map((id) => ({
      id,
      active: id === this.#ring.active,
      sealed: listSealedBy(this.#store, id, Number.MAX_SAFE_INTEGER).length,
    }));
  }

  /** Makes a new active key; what is sealed stays sealed by the keys before. */
  async add(): Promise<string> {
    const ring = withNewKey(this.#ring);
    // The file first: a store that names a key which no file has would not open.
    writeKeyring(this.#path, ring);
    this.#ring = ring;
    await this.#noteKeys();
    return ring.active;
  }

  /** Seals everything by the active key and drops the others. Calls during a rotation wait for it. Idempotent. */
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
    // The store first: a keyring that lacks a key which the store asks for would not open.
    this.#store.write((tx) => {
      for (const id of this.#ring.keys.keys()) if (!kept.keys.has(id)) tx.remove(keyChecks, SYSTEM, id);
    });
    await this.#store.durable();
    writeKeyring(this.#path, kept);
    this.#ring = kept;
  }

  async #noteKeys(): Promise<void> {
    this.#store.write((tx) => {
      for (const [id, key] of this.#ring.keys) {
        if (tx.get(keyChecks, SYSTEM, id) === undefined) tx.put(keyChecks, checkFor(key), SYSTEM, id);
      }
    });
    await this.#store.durable();
  }
}
