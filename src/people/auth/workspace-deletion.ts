/**
 * Deletes workspaces. The commit of a deletion removes the record of the workspace, without which all access is
 * refused. Members, tokens that are bound to the workspace, and everything else in its partition of the store are
 * then removed in bounded steps. Files are not touched.
 *
 * In a server of several workers the home of the workspace deletes it, in a shared turn. So no user can delete their
 * last two workspaces at once, and no session opens in the meantime. Other workers may have notebooks and
 * conversations of the workspace in memory. They drop these before the response is sent and before anything is
 * removed, so nothing more is written to the workspace.
 */

import type { Principal } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { type StoreKey, SYSTEM } from '#storage/keys.ts';
import {
  memberRecords,
  userWorkspaces,
  workspaceRecords,
  workspaceTokens,
} from '#storage/records/identity.ts';
import { removalOf, WORKSPACE } from '#storage/removals.ts';
import type { Transaction } from '#storage/transaction.ts';
import { roleTooLow } from './permissions.ts';
import { removeToken } from './tokens.ts';
import type { Workspaces } from './workspaces.ts';

/** The most records that one commit removes. */
const MAX_RECORDS = 200;

/** The part of other planes in the deletion of a workspace. */
export interface WorkspaceOccupants {
  /** Resolves with whether a session is attached to an environment of the workspace. Takes as many turns as it needs. */
  mayBeInUse(workspaceId: WorkspaceId): Promise<boolean>;
  /** Returns whether something runs in the workspace now, in any worker. Call it in a shared turn, in which the result is exact. */
  isActive(workspaceId: WorkspaceId): boolean;
  /** Frees the memory that this worker keeps for the workspace. */
  forget(workspaceId: WorkspaceId): void;
  /** Called once for a deleted workspace, in its home. */
  deleted(workspaceId: WorkspaceId): void;
  /** Removes the data that belongs to a record but is stored elsewhere. Called before the record is removed. */
  unlink(tx: Transaction, key: StoreKey): void;
}

type DeletionContext = Pick<PlaneContext, 'cluster' | 'removals'>;

export class WorkspaceDeletion {
  readonly #workspaces: Workspaces;
  readonly #context: DeletionContext;
  readonly #occupants: WorkspaceOccupants;
  /** Deleted workspaces that no worker has in memory any more. */
  readonly #forgotten = new Set<string>();

  constructor(workspaces: Workspaces, context: DeletionContext, occupants: WorkspaceOccupants) {
    this.#workspaces = workspaces;
    this.#context = context;
    this.#occupants = occupants;
    const { identity } = workspaces;
    const { cluster, removals } = context;
    removals.define(WORKSPACE, (workspaceId) => this.#removeSome(workspaceId));
    cluster.onAsked('workspace-deleted', async (workspaceId) => {
      identity.store.refresh();
      occupants.forget(workspaceId as WorkspaceId);
      await identity.store.durable();
      return true;
    });
  }

  /** Resolves when `delete` can decide at once. Rejects with the error that it would throw now. */
  async prepare(principal: Principal, id: string): Promise<void> {
    this.#check(principal, id);
    if (await this.#occupants.mayBeInUse(id as WorkspaceId)) throw inUse();
  }

  /**
   * Deletes a workspace that the caller owns. Throws `not_found`, `role_too_low`, `last_workspace` when the caller owns no other,
   * and `workspace_in_use` while something runs in it.
   */
  delete(principal: Principal, id: string): void {
    const { removals } = this.#context;
    const identity = this.#workspaces.identity;
    const workspaceId = id as WorkspaceId;
    this.#check(principal, id); // checked again, because the workspace may have been deleted since `prepare`
    if (this.#occupants.isActive(workspaceId)) throw inUse();
    this.#occupants.forget(workspaceId);
    identity.write((tx) => {
      tx.remove(workspaceRecords, id);
      removals.add(tx, removalOf(id));
    });
    this.#occupants.deleted(workspaceId);
    identity.announce('workspace-deleted', id);
  }

  #check(principal: Principal, id: string): void {
    const identity = this.#workspaces.identity;
    const workspaces = this.#workspaces;
    const { userId } = principal;
    workspaces.read(principal, id);
    const role = identity.store.get(memberRecords, id, userId)?.role ?? 'viewer';
    if (role !== 'owner') throw roleTooLow(role, 'owner');
    const others = identity.store.list(userWorkspaces, SYSTEM, [userId], { limit: Number.POSITIVE_INFINITY });
    for (const { id: other } of others) {
      if (other === id || identity.store.get(workspaceRecords, other) === undefined) continue;
      if (identity.store.get(memberRecords, other, userId)?.role === 'owner') return;
    }
    throw new AppError(
      'last_workspace',
      'You own no other workspace. Without one you could not create workspaces any more.',
    );
  }

  /** First every worker forgets the workspace, because the worker that deleted it may have died before it asked them. */
  #removeSome(workspaceId: string): boolean | Promise<boolean> {
    const { store } = this.#workspaces.identity;
    if (!this.#forgotten.has(workspaceId)) return this.#haveOthersForget(workspaceId);
    const keys = [...store.listPartition(workspaceId, MAX_RECORDS)];
    store.write((tx) => {
      for (const key of keys) this.#remove(tx, key);
    });
    const isLast = keys.length < MAX_RECORDS;
    if (isLast) this.#forgotten.delete(workspaceId);
    return isLast;
  }

  async #haveOthersForget(workspaceId: string): Promise<false> {
    const { cluster } = this.#context;
    if (!(await cluster.haveOthersAct('workspace-deleted', workspaceId)))
      throw new Error('A worker could not take a deleted workspace out of memory.');
    this.#forgotten.add(workspaceId);
    return false;
  }

  #remove(tx: Transaction, key: StoreKey): void {
    const [workspaceId, name, ...ids] = key;
    const [id = ''] = ids;
    this.#occupants.unlink(tx, key);
    if (name === memberRecords.name) tx.remove(userWorkspaces, SYSTEM, id, workspaceId);
    if (name === workspaceTokens.name) removeToken(tx, id);
    tx.remove({ name, version: 1 }, workspaceId, ...ids);
  }
}

function inUse(): AppError {
  return new AppError('workspace_in_use', 'Sessions are open in this workspace.');
}
