/** The members of a workspace and their roles. A workspace always keeps an owner. */

import type { Principal } from '#src/base/caller/principal.ts';
import type { Role } from '#src/base/caller/role.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { StateCheck } from '#src/base/errors/refusals.ts';
import { isPlausibleId, type UserId, type WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { Member, MemberChange } from '#src/contract/wire/identity.ts';
import { SYSTEM } from '#storage/keys.ts';
import { checkCursor, listingOf, type PageRequest, pageOf } from '#storage/lists/listing.ts';
import type { Listing } from '#storage/lists/page-builder.ts';
import {
  type MemberRecord,
  memberRecords,
  userRecords,
  userWorkspaces,
  workspaceRecords,
  workspaceTokens,
} from '#storage/records/identity.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { Identity } from './identity.ts';
import { removeToken } from './tokens.ts';

export class Members {
  readonly #identity: Identity;

  constructor(identity: Identity) {
    this.#identity = identity;
  }

  /** Returns a user's current right to read in a workspace, or undefined when the user is not a member. */
  reader(
    workspaceId: WorkspaceId,
    userId: string,
  ): Pick<Principal, 'workspaceId' | 'userId' | 'role'> | undefined {
    const member = this.#identity.store.get(memberRecords, workspaceId, userId);
    return member === undefined ? undefined : { workspaceId, userId: userId as UserId, role: member.role };
  }

  /** Adds a member, and creates the user when there is none with this id. Throws `already_exists`. */
  add(
    workspaceId: WorkspaceId,
    userId: string,
    { role, name = null }: MemberChange & { role: Role },
  ): Member {
    const createdAt = this.#identity.timestamp();
    const record: MemberRecord = { role, name, createdAt, updatedAt: createdAt };
    this.#identity.write((tx) => {
      if (tx.get(memberRecords, workspaceId, userId) !== undefined) {
        throw new AppError('already_exists', `${userId} is already a member of this workspace.`);
      }
      if (tx.get(userRecords, SYSTEM, userId) === undefined)
        tx.put(userRecords, { createdAt }, SYSTEM, userId);
      tx.put(memberRecords, record, workspaceId, userId);
      tx.mark(userWorkspaces, SYSTEM, userId, workspaceId);
      if (role === 'owner') countOwners(tx, workspaceId, 1);
    });
    return { userId, ...record };
  }

  /** Returns a member. Throws `not_found`, also for a user of another workspace. */
  read(workspaceId: WorkspaceId, userId: string): Member {
    const record = this.#identity.store.get(memberRecords, workspaceId, userId);
    if (record === undefined) throw notFound();
    return { userId, ...record };
  }

  /** Returns a page of members, by user id. */
  list(workspaceId: WorkspaceId, { after, limit }: PageRequest): Listing<Member> {
    const { store } = this.#identity;
    checkCursor(after, isPlausibleId);
    const entries = store.list(memberRecords, workspaceId, [], pageOf({ after }));
    return listingOf(entries, limit, (record, userId) => ({ userId, ...record }));
  }

  /**
   * Changes the given fields and returns the member. Throws `not_found`, `last_owner` for the last owner's role, and
   * the error of `checkState`.
   */
  change(
    workspaceId: WorkspaceId,
    userId: string,
    fields: MemberChange,
    checkState: StateCheck<string> = () => {},
  ): Member {
    return this.#identity.write((tx) => {
      const current = tx.get(memberRecords, workspaceId, userId);
      if (current === undefined) throw notFound();
      checkState(current.updatedAt);
      const role = fields.role ?? current.role;
      if (role !== current.role) {
        if (role === 'owner') countOwners(tx, workspaceId, 1);
        if (current.role === 'owner') countOwners(tx, workspaceId, -1);
      }
      const name = fields.name === undefined ? current.name : fields.name;
      const updatedAt = timestamp(Math.max(this.#identity.nowMs(), Date.parse(current.updatedAt) + 1));
      const record: MemberRecord = { ...current, role, name, updatedAt };
      tx.put(memberRecords, record, workspaceId, userId);
      return { userId, ...record };
    });
  }

  /**
   * Removes a member and revokes their tokens that are bound to the workspace. Throws `not_found`, `last_owner`, and
   * the error of `checkState`.
   */
  remove(workspaceId: WorkspaceId, userId: string, checkState: StateCheck<string> = () => {}): void {
    // Tokens that are not committed yet are revoked, too. A token that is not revoked would become valid again once
    // the user is a member again.
    const bound = this.#identity.store.idsUnder(workspaceTokens, workspaceId);
    this.#identity.write((tx) => {
      const current = tx.get(memberRecords, workspaceId, userId);
      if (current === undefined) throw notFound();
      if (current.role === 'owner') countOwners(tx, workspaceId, -1);
      checkState(current.updatedAt);
      tx.remove(memberRecords, workspaceId, userId);
      tx.remove(userWorkspaces, SYSTEM, userId, workspaceId);
      for (const id of bound) removeToken(tx, id, (token) => token.userId === userId, workspaceId);
    });
  }
}

function countOwners(tx: Transaction, workspaceId: WorkspaceId, change: 1 | -1): void {
  const workspace = tx.get(workspaceRecords, workspaceId);
  if (workspace === undefined) throw notFound();
  const owners = workspace.owners + change;
  if (owners === 0)
    throw new AppError('last_owner', 'This is the only owner. Make somebody else an owner first.');
  tx.put(workspaceRecords, { ...workspace, owners }, workspaceId);
}
