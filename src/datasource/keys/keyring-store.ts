/**
 * The keyring of a running server, and its rotation: a new key becomes active, and seals every data
 * key. The old keys stay in the keyring until an operator deletes them, because earlier backups
 * need them. The store has checks only of the keys that seal something in it. A rotation that a
 * crash interrupts can be repeated, because each record names the key that seals it.
 *
 * In a server of several workers the owner of `'*'` changes the keyring. The other workers read it
 * again before the response is sent. Each worker seals the records at home there again: connections
 * of its workspaces, and secrets of its notebooks.
 */

import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import nacl from 'tweetnacl';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { Key } from '#src/contract/wire/health.ts';
import { ALONE, type Cluster } from '#src/runtime/homes/cluster.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { SYSTEM } from '#storage/keys.ts';
import { type KeyCheck, keyChecks } from '#storage/records/datasources.ts';
import type { Store } from '#storage/store.ts';
import type { SealedRef } from './connection-cipher.ts';
import {
  hasKeyring,
  type Keyring,
  KeyringError,
  type KeyringSource,
  protectKeyring,
  readKeyring,
  withNewKey,
  withoutKey,
  writeKeyring,
} from './keyring.ts';
import { canReseal, homeOfSealed, listSealedBy, opensSealedBy, reseal } from './sealed-connections.ts';

/** Records that are resealed in one turn of the event loop, so that a rotation does not hold up requests. */
const BATCH = 100;
/**
 * How often the workers are asked to seal again. A workspace may move from a worker that has not
 * sealed it yet to a worker that has already finished.
 */
const MAX_ROUNDS = 5;

/**
 * Throws `KeyringError` unless the keyring has every key that the store needs. If the check of a
 * key is damaged, a record that the key sealed is used instead.
 */
export function requireFittingKeyring(
  store: Pick<Store, 'get' | 'listKeys'>,
  path: string,
  ring: Keyring,
): void {
  for (const [id = ''] of store.listKeys(keyChecks, SYSTEM, [], Number.POSITIVE_INFINITY)) {
    const key = ring.keys.get(id);
    const check = unlessDamaged(() => store.get(keyChecks, SYSTEM, id));
    const fits = (candidate: Uint8Array) =>
      check === undefined ? opensSealedBy(store, ring, id) : matchesKeyCheck(candidate, check);
    if (key !== undefined && fits(key)) continue;
    const why = key === undefined ? `it lacks the key ${id}` : `its key ${id} is another one`;
    throw new KeyringError(
      `The keyring ${path} does not fit this data directory: ${why}.`,
      'Restore the keyring that belongs to this directory, or set TROUPE_KEYRING_FILE to the place where it is.',
    );
  }
}

/** Owns the keyring file and the key checks in the store, which must always fit each other. */
export class KeyringStore implements KeyringSource {
  readonly #store: Store;
  readonly #path: string;
  readonly #cluster: Cluster;
  #ring: Keyring;
  #rotation: Promise<void> | undefined;

  private constructor(store: Store, path: string, ring: Keyring, cluster: Cluster) {
    this.#store = store;
    this.#path = path;
    this.#ring = ring;
    this.#cluster = cluster;
    cluster.onSlotsTaken(() => this.#readAnewIfPossible());
    cluster.onAsked('keyring-changed', async () => {
      this.#readAnew();
      await store.durable(); // records sealed with the earlier key are listed from now on
      return true;
    });
    cluster.onAsked('seal-again', async () => {
      await this.#sealOwnAgain();
      return true;
    });
  }

  /**
   * Reads the keyring, or creates one if nothing was ever sealed in this store. Throws
   * `KeyringError`, without writing anything, when the keyring is missing although records are
   * sealed, or when another keyring sealed them. A worker of a server with several workers never
   * creates a keyring, and nor does a server that only reads.
   */
  static async open(store: Store, path: string, cluster: Cluster = ALONE): Promise<KeyringStore> {
    const isFirst = cluster.size === 1 && !store.isReadOnly;
    const isNew = isFirst && !hasKeyring(path) && [...store.listKeys(keyChecks, SYSTEM, [], 1)].length === 0;
    if (isNew) writeKeyring(path, withNewKey(undefined));
    const ring = readKeyring(path);
    requireFittingKeyring(store, path, ring);
    if (!store.isReadOnly) protectKeyring(path);
    const opened = new KeyringStore(store, path, ring, cluster);
    if (isFirst) await opened.#storeKeyChecks();
    return opened;
  }

  get ring(): Keyring {
    return this.#ring;
  }

  ringWith(keyId: string): Keyring {
    if (!this.#ring.keys.has(keyId) && this.#cluster.size > 1) this.#readAnew();
    return this.#ring;
  }

  /** Returns every key with the number of connections that it seals. */
  states(): Key[] {
    return [...this.#ring.keys.keys()].map((id) => ({
      id,
      active: id === this.#ring.active,
      sealed: listSealedBy(this.#store, id, Number.MAX_SAFE_INTEGER).length,
    }));
  }

  /** Adds a key, makes it the active one and returns its id. Sealed records stay sealed by the older keys. */
  async add(): Promise<string> {
    const ring = withNewKey(this.#ring);
    // The file is written first: the store could not be opened if it named a key that the file
    // lacks.
    writeKeyring(this.#path, ring);
    this.#ring = ring;
    await this.#storeKeyChecks();
    await this.#cluster.askOthers('keyring-changed', null);
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
    await this.#store.durable(); // `listSealedBy` lists only committed records
    await this.#sealOwnAgain();
    if (this.#cluster.size > 1) await this.#haveOthersSealAgain();
    this.#store.write((tx) => {
      for (const id of this.#ring.keys.keys()) if (id !== this.#ring.active) tx.remove(keyChecks, SYSTEM, id);
    });
    await this.#store.durable();
  }

  /** Rejects with `unavailable` when a record remains that no worker has sealed again. */
  async #haveOthersSealAgain(): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      await this.#cluster.askOthers('seal-again', null);
      await this.#sealOwnAgain();
      this.#store.refresh();
      const old = [...this.#ring.keys.keys()].filter((id) => id !== this.#ring.active);
      const left = old.flatMap((id) => listSealedBy(this.#store, id, BATCH));
      if (!left.some((ref) => canReseal(this.#store, ref))) return;
    }
    throw new AppError('unavailable', 'Workspaces move between workers. Rotate the keys again.', {
      headers: { 'retry-after': '1' },
    });
  }

  /** Seals the records at home in this worker with the active key. */
  async #sealOwnAgain(): Promise<void> {
    const isOwn = (ref: SealedRef) => this.#cluster.owns(ref.workspaceId, homeOfSealed(this.#store, ref));
    for (const keyId of this.#ring.keys.keys()) {
      if (keyId === this.#ring.active) continue;
      for (let page: readonly SealedRef[] = []; ; ) {
        page = listSealedBy(this.#store, keyId, BATCH, page.at(-1));
        if (page.length === 0) break;
        this.#store.write((tx) => {
          for (const ref of page) if (isOwn(ref)) reseal(tx, this.#ring, keyId, ref);
        });
        await nextTurn();
        await this.#store.durable();
      }
    }
  }

  /**
   * Deletes a key. Backups that need this key can no longer be opened with this keyring. Rejects
   * with `not_found`, and with `key_in_use` while the key is active or seals something.
   */
  async delete(keyId: string): Promise<void> {
    await this.#rotation;
    await this.#store.durable(); // records that the key seals are listed after this
    if (this.#cluster.size > 1) this.#store.refresh();
    if (!this.#ring.keys.has(keyId)) throw notFound();
    const isActive = keyId === this.#ring.active;
    if (isActive || listSealedBy(this.#store, keyId, 1).length > 0)
      throw new AppError(
        'key_in_use',
        `The key ${keyId} ${isActive ? 'encrypts new connections' : 'still encrypts connections'}. Rotate the keys first.`,
      );
    // The store is written first: it could not be opened if it named a key that the keyring lacks.
    this.#store.write((tx) => tx.remove(keyChecks, SYSTEM, keyId));
    await this.#store.durable();
    const rest = withoutKey(this.#ring, keyId);
    writeKeyring(this.#path, rest);
    this.#ring = rest;
    await this.#cluster.askOthers('keyring-changed', null);
  }

  /** A file that cannot be read is reported at the next start; until then this worker uses the keys that it has. */
  #readAnewIfPossible(): void {
    try {
      this.#readAnew();
    } catch (error) {
      if (!(error instanceof KeyringError)) throw error;
    }
  }

  #readAnew(): void {
    this.#ring = readKeyring(this.#path);
  }

  async #storeKeyChecks(): Promise<void> {
    this.#store.write((tx) => {
      for (const [id, key] of this.#ring.keys) {
        const isNeeded = id === this.#ring.active || listSealedBy(this.#store, id, 1).length > 0;
        if (isNeeded && unlessDamaged(() => tx.get(keyChecks, SYSTEM, id)) === undefined)
          tx.put(keyChecks, createKeyCheck(key), SYSTEM, id);
      }
    });
    await this.#store.durable();
  }
}

const PHRASE = new Uint8Array(Buffer.from('troupe key check 1'));

/**
 * Returns a sealed phrase that only this key opens. By this phrase the store recognises a wrong
 * keyring.
 */
function createKeyCheck(key: Uint8Array): KeyCheck {
  const nonce = new Uint8Array(randomBytes(nacl.secretbox.nonceLength));
  return { nonce, box: nacl.secretbox(PHRASE, nonce, key) };
}

/** Returns whether this is the key that the check was made with. */
function matchesKeyCheck(key: Uint8Array, { nonce, box }: KeyCheck): boolean {
  const opened = nacl.secretbox.open(new Uint8Array(box), new Uint8Array(nonce), key);
  return opened !== null && nacl.verify(opened, PHRASE);
}
