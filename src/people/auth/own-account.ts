import type { TokenHolder } from '#src/base/caller/principal.ts';
import { notFound } from '#src/base/errors/errors.ts';
import { isPlausibleId } from '#src/base/ids.ts';
import type { OwnAccount, OwnWorkspace } from '#src/contract/wire/identity.ts';
import { SYSTEM } from '#storage/keys.ts';
import { checkCursor, listingOf, type PageRequest, pageOf } from '#storage/lists/listing.ts';
import {
  accessTokenRecords,
  memberRecords,
  userWorkspaces,
  workspaceRecords,
} from '#storage/records/identity.ts';
import type { Identity } from './identity.ts';

/** The information about the caller, which it gets before it names a workspace. */
export class OwnAccounts {
  readonly #identity: Identity;

  constructor(identity: Identity) {
    this.#identity = identity;
  }

  /**
   * Returns the user and the token of a caller, and a page of the workspaces that the token can enter, by id. Throws
   * `invalid_cursor`.
   */
  read({ userId, tokenId }: TokenHolder, { after, limit }: PageRequest): OwnAccount {
    checkCursor(after, isPlausibleId);
    const { store } = this.#identity;
    const token = store.get(accessTokenRecords, SYSTEM, tokenId);
    if (token === undefined) throw notFound(); // the token was revoked since the request was admitted
    const { name, workspaceId, scopes, createdAt, expiresAt } = token;
    const entries = store.list(userWorkspaces, SYSTEM, [userId], pageOf({ after }));
    const { items, nextCursor } = listingOf(entries, limit, (_, id) =>
      workspaceId === null || workspaceId === id ? this.#workspace(id, userId) : undefined,
    );
    return {
      user: { id: userId },
      token: { id: tokenId, name, workspaceId, scopes, createdAt, expiresAt },
      workspaces: items,
      nextCursor,
    };
  }

  #workspace(id: string, userId: string): OwnWorkspace | undefined {
    const { store } = this.#identity;
    const workspace = store.get(workspaceRecords, id);
    const member = store.get(memberRecords, id, userId);
    return workspace && member && { id, name: workspace.name, role: member.role };
  }
}
