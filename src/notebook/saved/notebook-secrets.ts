/**
 * Secret environment variables of notebooks. Their values are sealed, and are opened only to start a kernel. The values never
 * appear in an answer, event, file or log. A notebook that is made with the settings of another notebook gets the secrets of that
 * notebook.
 */

import { notFound } from '#src/base/errors/errors.ts';
import { refuseOverQuota } from '#src/base/errors/quota.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { NotebookSecret } from '#src/contract/wire/notebook.ts';
import {
  type NotebookSecretsRecord,
  notebookSecretRecords,
  sealedSecretName,
} from '#storage/records/notebooks.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { SavedNotebooks } from './saved-notebooks.ts';

/** Seals secrets and opens them again, under names that are unique in a workspace. */
export interface SecretVault {
  seal(tx: Transaction, workspaceId: string, name: string, secret: string): void;
  remove(tx: Transaction, workspaceId: string, name: string): void;
  open(workspaceId: string, name: string): string;
}

/** The most secrets of one notebook. */
const MAX_SECRETS = 100;

type SecretsByName = NotebookSecretsRecord['byName'];

export class NotebookSecrets {
  readonly #store: Store;
  readonly #vault: SecretVault;
  readonly #notebooks: Pick<SavedNotebooks, 'exists'>;

  constructor(store: Store, vault: SecretVault, notebooks: Pick<SavedNotebooks, 'exists'>) {
    this.#store = store;
    this.#vault = vault;
    this.#notebooks = notebooks;
  }

  /** Returns the names of the secrets, sorted, with their setters and times. Throws `not_found`. */
  list(workspaceId: WorkspaceId, notebookId: string): NotebookSecret[] {
    return Object.entries(this.#of(workspaceId, notebookId))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { updatedBy, updatedAt }]) => ({ name, updatedBy, updatedAt }));
  }

  /**
   * Stores a secret, in place of an earlier secret with the same name. The next kernel of the notebook has the new value. Throws
   * `not_found`, and `quota_exceeded` when the notebook has `MAX_SECRETS`.
   */
  set(
    workspaceId: WorkspaceId,
    notebookId: string,
    { name, value, userId }: { readonly name: string; readonly value: string; readonly userId: string },
  ): NotebookSecret {
    const store = this.#store;
    const vault = this.#vault;
    const byName = this.#of(workspaceId, notebookId);
    if (!Object.hasOwn(byName, name))
      refuseOverQuota({ what: 'secrets for each notebook' }, MAX_SECRETS, () => Object.keys(byName).length);
    const set = { updatedBy: userId, updatedAt: timestamp() };
    store.write((tx) => {
      vault.seal(tx, workspaceId, sealedSecretName(notebookId, name), value);
      tx.put(notebookSecretRecords, { byName: { ...byName, [name]: set } }, workspaceId, notebookId);
    });
    return { name, ...set };
  }

  /** Deletes a secret. Throws `not_found`. */
  remove(workspaceId: WorkspaceId, notebookId: string, name: string): void {
    const store = this.#store;
    const vault = this.#vault;
    const { [name]: removed, ...byName } = this.#of(workspaceId, notebookId);
    if (removed === undefined) throw notFound();
    store.write((tx) => {
      vault.remove(tx, workspaceId, sealedSecretName(notebookId, name));
      tx.put(notebookSecretRecords, { byName }, workspaceId, notebookId);
    });
  }

  /**
   * Returns the values of the secrets by name. They may only be used for the environment of a kernel. Throws `UnsealError`.
   */
  open(workspaceId: WorkspaceId, notebookId: string): Record<string, string> {
    const names = Object.keys(this.#stored(workspaceId, notebookId));
    return Object.fromEntries(
      names.map((name) => [name, this.#vault.open(workspaceId, sealedSecretName(notebookId, name))]),
    );
  }

  /** Gives a new notebook the secrets of another one, with their setters and times. Throws `UnsealError`. */
  copy(tx: Transaction, workspaceId: WorkspaceId, from: string, to: string): void {
    const byName = this.#stored(workspaceId, from);
    if (Object.keys(byName).length === 0) return;
    for (const [name, value] of Object.entries(this.open(workspaceId, from)))
      this.#vault.seal(tx, workspaceId, sealedSecretName(to, name), value);
    tx.put(notebookSecretRecords, { byName }, workspaceId, to);
  }

  /** Removes the secrets of a notebook that is deleted. */
  erase(tx: Transaction, workspaceId: WorkspaceId, notebookId: string): void {
    for (const name of Object.keys(this.#stored(workspaceId, notebookId)))
      this.#vault.remove(tx, workspaceId, sealedSecretName(notebookId, name));
    tx.remove(notebookSecretRecords, workspaceId, notebookId);
  }

  #of(workspaceId: WorkspaceId, notebookId: string): SecretsByName {
    if (!this.#notebooks.exists(workspaceId, notebookId)) throw notFound();
    return this.#stored(workspaceId, notebookId);
  }

  #stored(workspaceId: WorkspaceId, notebookId: string): SecretsByName {
    return this.#store.get(notebookSecretRecords, workspaceId, notebookId)?.byName ?? {};
  }
}
