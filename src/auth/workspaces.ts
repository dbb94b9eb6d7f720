/** Workspaces: making one, and which ones a caller belongs to. */
import { AppError, notFound } from '#src/core/errors.ts';
import { newId, type WorkspaceId } from '#src/core/ids.ts';
import type { Principal } from '#src/core/principal.ts';
import {
  accessTokenRecords,
  memberRecords,
  userRecords,
  userWorkspaces,
  workspaceRecords,
} from '#storage/identity.ts';
import { SYSTEM } from '#storage/keys.ts';
import { invalidCursor, type Listing, listingOf, type PageRequest } from '#storage/listing.ts';
import type { Entry, Transaction } from '#storage/store.ts';
import type { Identity } from './identity.ts';

export interface Workspace {
  readonly id: string;
  readonly name: string;
  readonly createdAt: string;
}

export class Workspaces {
  readonly #identity: Identity;

  constructor(identity: Identity) {
    this.#identity = identity;
  }

  /** Makes a workspace whose owner is the caller. A token that is bound to a workspace cannot: it could not enter. */
  create(principal: Principal, name: string): Workspace {
    if (this.#boundTo(principal) !== null) {
      throw new AppError(
        'missing_scope',
        'This access token is bound to one workspace and cannot make another.',
      );
    }
    const id = newId<WorkspaceId>('workspace');
    const createdAt = this.#identity.timestamp();
    this.#identity.write((tx) => putWorkspace(tx, { id, name, createdAt, ownerId: principal.userId }));
    return { id, name, createdAt };
  }

  /** Throws `not_found` for a workspace that the caller cannot enter with this token. */
  read(principal: Principal, id: string): Workspace {
    const workspace = this.#isVisible(principal, id) ? this.#load(id) : undefined;
    if (workspace === undefined) throw notFound();
    return workspace;
  }

  /** The workspaces that the caller can enter with this token, by id. */
  list(principal: Principal, { after, limit }: PageRequest): Listing<Workspace> {
    if (after !== undefined && !this.#isVisible(principal, after)) throw invalidCursor();
    return listingOf(this.#visible(principal, after), limit, (workspace) => workspace);
  }

  *#visible(principal: Principal, after: string | undefined): Generator<Entry<Workspace>> {
    const { store } = this.#identity;
    const page = { after, limit: Number.POSITIVE_INFINITY };
    for (const { id } of store.list(userWorkspaces, SYSTEM, [principal.userId], page)) {
      const workspace = this.#isVisible(principal, id) ? this.#load(id) : undefined;
      if (workspace !== undefined) yield { id, value: workspace };
    }
  }

  #load(id: string): Workspace | undefined {
    const record = this.#identity.store.get(workspaceRecords, id);
    return record === undefined ? undefined : { id, name: record.name, createdAt: record.createdAt };
  }

  #isVisible(principal: Principal, id: string): boolean {
    const bound = this.#boundTo(principal);
    if (bound !== null && bound !== id) return false;
    return this.#identity.store.get(memberRecords, id, principal.userId) !== undefined;
  }

  #boundTo({ tokenId }: Principal): string | null {
    return this.#identity.store.get(accessTokenRecords, SYSTEM, tokenId)?.workspaceId ?? null;
  }
}

export interface NewWorkspace extends Workspace {
  readonly ownerId: string;
}

/** Writes a workspace with its first owner, who is made a user when there is none of that id. */
export function putWorkspace(tx: Transaction, { id, name, createdAt, ownerId }: NewWorkspace): void {
  tx.put(workspaceRecords, { name, createdAt, owners: 1 }, id);
  tx.put(memberRecords, { role: 'owner', name: null, createdAt, updatedAt: createdAt }, id, ownerId);
  tx.put(userWorkspaces, null, SYSTEM, ownerId, id);
  if (tx.get(userRecords, SYSTEM, ownerId) === undefined) tx.put(userRecords, { createdAt }, SYSTEM, ownerId);
}
