import type { Principal } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { isPlausibleId, type WorkspaceId } from '#src/base/ids.ts';
import type { Workspace } from '#src/contract/wire/identity.ts';
import { SYSTEM } from '#storage/keys.ts';
import { newListedId } from '#storage/lists/listed-ids.ts';
import { checkCursor, listingOf, type PageRequest, pageOf } from '#storage/lists/listing.ts';
import type { Listing } from '#storage/lists/page-builder.ts';
import {
  accessTokenRecords,
  isUnbound,
  memberRecords,
  userRecords,
  userWorkspaces,
  workspaceRecords,
} from '#storage/records/identity.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { Identity } from './identity.ts';

/** Workspaces: creating them, and finding those that a caller can enter. */
export class Workspaces {
  readonly identity: Identity;

  constructor(identity: Identity) {
    this.identity = identity;
  }

  /** Creates a workspace that the caller owns. Throws `missing_scope` for a bound token, which could not enter it. */
  create(principal: Principal, name: string): Workspace {
    this.checkCreation(principal);
    const id = this.#newId(principal.userId);
    const createdAt = this.identity.timestamp();
    this.identity.write((tx) => putWorkspace(tx, { id, name, createdAt, ownerId: principal.userId }));
    return { id, name, createdAt };
  }

  /** Throws `missing_scope` for a bound token. */
  checkCreation(principal: Principal): void {
    const record = this.identity.store.get(accessTokenRecords, SYSTEM, principal.tokenId);
    if (record === undefined || isUnbound(record)) return;
    throw new AppError(
      'missing_scope',
      record.workspaceId === null
        ? 'Your workspaces follow from your groups at the identity provider. Only an operator of the server creates them.'
        : 'This access token is bound to one workspace and cannot create another.',
    );
  }

  /** Returns a workspace. Throws `not_found` when the caller cannot enter it with this token. */
  read(principal: Principal, id: string): Workspace {
    const workspace = this.#isVisible(principal, id) ? this.#load(id) : undefined;
    if (workspace === undefined) throw notFound();
    return workspace;
  }

  /** Returns a page of the workspaces that the caller can enter with this token, by id. */
  list(principal: Principal, { after, limit }: PageRequest): Listing<Workspace> {
    checkCursor(after, isPlausibleId);
    const { store } = this.identity;
    const entries = store.list(userWorkspaces, SYSTEM, [principal.userId], pageOf({ after }));
    return listingOf(entries, limit, (_, id) =>
      this.#isVisible(principal, id) ? this.#load(id) : undefined,
    );
  }

  /** Workspaces are created in several workers, and listed together. */
  #newId(userId: string): WorkspaceId {
    const list = { kind: userWorkspaces, partition: SYSTEM, prefix: [userId] };
    return newListedId(this.identity.store, 'workspace', [list]);
  }

  #load(id: string): Workspace | undefined {
    const record = this.identity.store.get(workspaceRecords, id);
    return record === undefined ? undefined : { id, name: record.name, createdAt: record.createdAt };
  }

  #isVisible(principal: Principal, id: string): boolean {
    const bound = this.#boundTo(principal);
    if (bound !== null && bound !== id) return false;
    return this.identity.store.get(memberRecords, id, principal.userId) !== undefined;
  }

  #boundTo({ tokenId }: Principal): string | null {
    return this.identity.store.get(accessTokenRecords, SYSTEM, tokenId)?.workspaceId ?? null;
  }
}

export interface StoredWorkspace extends Workspace {
  readonly ownerId: string;
}

/** Stores a workspace with its first owner, and creates the user when there is none with this id. */
export function putWorkspace(tx: Transaction, { id, name, createdAt, ownerId }: StoredWorkspace): void {
  tx.put(workspaceRecords, { name, createdAt, owners: 1 }, id);
  tx.put(memberRecords, { role: 'owner', name: null, createdAt, updatedAt: createdAt }, id, ownerId);
  tx.mark(userWorkspaces, SYSTEM, ownerId, id);
  if (tx.get(userRecords, SYSTEM, ownerId) === undefined) tx.put(userRecords, { createdAt }, SYSTEM, ownerId);
}
