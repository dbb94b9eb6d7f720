/**
 * The accounts of people who sign in with the identity provider: which user of this server each person is, and the memberships that
 * follow from their groups. Every answer of the provider passes through here.
 */

import type { Role } from '#src/base/caller/role.ts';
import { Secret } from '#src/base/caller/secret.ts';
import { AppError } from '#src/base/errors/errors.ts';
import type { UserId, WorkspaceId } from '#src/base/ids.ts';
import { cutText } from '#src/base/text/cut-text.ts';
import { SYSTEM } from '#storage/keys.ts';
import {
  memberRecords,
  type ProviderAccount,
  providerAccounts,
  userRecords,
  userSessions,
  userWorkspaces,
  workspaceExists,
} from '#storage/records/identity.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { Identity } from '../identity.ts';
import type { Members } from '../members.ts';
import { reaches } from '../permissions.ts';
import { removeToken } from '../tokens.ts';
import { claimIn, type ProvenPerson, type ProviderSettings } from './identity-provider.ts';

/** Seals secrets with the keyring of the server. */
export interface SubjectVault {
  seal(tx: Transaction, workspaceId: string, name: string, key: string): void;
  remove(tx: Transaction, workspaceId: string, name: string): void;
  open(workspaceId: string, name: string): string;
}

export interface ProviderAccountsOptions {
  readonly identity: Identity;
  readonly members: Members;
  readonly vault: SubjectVault;
  readonly settings: ProviderSettings;
}

/** The reason why a person cannot sign in although the provider has confirmed who they are. */
class AccountRefused extends Error {
  override readonly name = 'AccountRefused';
  readonly because: 'unknown' | 'no-workspace';
  constructor(because: 'unknown' | 'no-workspace', message: string) {
    super(message);
    this.because = because;
  }
}

/** The group of all people in the table of roles. */
const EVERYBODY = '*';
const USER = /^(?!\.{1,2}$)[A-Za-z0-9._@-]{1,128}$/;
/** Groups of a person beyond this number are ignored. */
const MAX_GROUPS = 2000;
const MAX_NAME_CHARACTERS = 200;

export class ProviderAccounts {
  readonly #options: ProviderAccountsOptions;

  constructor(options: ProviderAccountsOptions) {
    this.#options = options;
  }

  /** Yields the accounts of people whom the provider still knows. */
  *active(): Generator<{ readonly userId: UserId; readonly account: ProviderAccount }> {
    const { store } = this.#options.identity;
    for (const { id, value } of store.list(providerAccounts, SYSTEM, [], { limit: Number.POSITIVE_INFINITY }))
      if (value.isActive) yield { userId: id as UserId, account: value };
  }

  read(userId: string): ProviderAccount | undefined {
    return this.#options.identity.store.get(providerAccounts, SYSTEM, userId);
  }

  /** Returns the tokens of a person at the provider. Throws `UnsealError`. */
  tokensOf(userId: string): { readonly refreshToken: Secret; readonly idToken: Secret | undefined } {
    const { refreshToken, idToken } = JSON.parse(this.#options.vault.open(SYSTEM, sealedName(userId)));
    return {
      refreshToken: new Secret(String(refreshToken)),
      idToken: typeof idToken === 'string' ? new Secret(idToken) : undefined,
    };
  }

  /**
   * Returns the user for a person, with the memberships of their groups. Call it in a shared turn. Throws
   * `AccountRefused` when the claims have no name for a user, when that user belongs to another person, and when the
   * person is not a member of any workspace.
   */
  admit(issuer: string, person: ProvenPerson): UserId {
    const { identity, settings } = this.#options;
    const { store } = identity;
    const userId = this.#userOf(person);
    const account = this.read(userId);
    if (account !== undefined && (account.issuer !== issuer || account.subject !== person.subject))
      throw new AccountRefused(
        'unknown',
        `The user ${userId} belongs to another person of the identity provider.`,
      );
    // An owner may have added this user by a mail address. Only a verified address proves that it is this person's.
    if (account === undefined && settings.oidcUserClaim !== 'email' && store.has(userRecords, SYSTEM, userId))
      throw new AccountRefused(
        'unknown',
        `The user ${userId} already exists, but does not sign in with the provider.`,
      );
    const managed = account?.managed ?? [];
    if (!this.#settle(userId, person, { issuer, subject: person.subject, managed })) {
      this.drop(userId);
      throw new AccountRefused('no-workspace', `The groups of ${userId} lead to no workspace.`);
    }
    return userId;
  }

  /** Updates the memberships of a person to their present groups. Call it in a shared turn. */
  renew(userId: UserId, person: ProvenPerson): void {
    const account = this.read(userId);
    if (account === undefined || !account.isActive || account.subject !== person.subject) return;
    const mayStay = this.#isUser(userId, person) && this.#settle(userId, person, account);
    if (!mayStay) this.drop(userId);
  }

  /** Stores the refresh token that the provider has issued in place of another one, unless the person has signed in again since. */
  replaceToken(userId: UserId, used: Secret, renewed: Secret): void {
    const { identity, vault } = this.#options;
    if (this.read(userId)?.isActive !== true) return;
    const { refreshToken, idToken } = this.tokensOf(userId);
    if (refreshToken.reveal() !== used.reveal()) return;
    const tokens = JSON.stringify({ refreshToken: renewed.reveal(), idToken: idToken?.reveal() });
    identity.store.write((tx) => vault.seal(tx, SYSTEM, sealedName(userId), tokens));
  }

  /**
   * Ends the sessions of a person, and the use of their access tokens. Memberships stay in the list without effect, because the
   * person may come back: some providers also end a sign-in when the person signs out.
   */
  drop(userId: UserId): void {
    const { identity, vault } = this.#options;
    const account = this.read(userId);
    if (account === undefined) return;
    identity.write((tx) => {
      tx.put(providerAccounts, { ...account, isActive: false }, SYSTEM, userId);
      vault.remove(tx, SYSTEM, sealedName(userId));
      for (const id of identity.store.idsUnder(userSessions, SYSTEM, userId))
        removeToken(tx, id, ({ session }) => session?.signedInWith === null);
    });
  }

  #isUser(userId: UserId, person: ProvenPerson): boolean {
    try {
      return this.#userOf(person) === userId;
    } catch {
      return false;
    }
  }

  #userOf({ claims }: ProvenPerson): UserId {
    const { oidcUserClaim } = this.#options.settings;
    const name = claims[oidcUserClaim];
    if (typeof name !== 'string' || !USER.test(name))
      throw new AccountRefused(
        'unknown',
        `The claim ${oidcUserClaim} is missing, or cannot be the name of a user.`,
      );
    if (oidcUserClaim === 'email' && claims.email_verified !== true)
      throw new AccountRefused('unknown', 'The provider has not verified the mail address (email_verified).');
    return name as UserId;
  }

  /**
   * Stores the answer of the provider, and sets the memberships that follow from it. Returns whether the person may enter a
   * workspace, by a group or because an owner has added them. The membership of a last owner is kept even without a group, but does
   * not count.
   */
  #settle(
    userId: UserId,
    person: ProvenPerson,
    { issuer, subject, managed }: Pick<ProviderAccount, 'issuer' | 'subject' | 'managed'>,
  ): boolean {
    const { identity, vault, settings } = this.#options;
    const groups = groupsIn(claimIn(person.claims, settings.oidcGroupsClaim));
    const wanted = rolesOf(settings.oidcRoles, groups);
    const now = new Set<string>();
    for (const workspaceId of managed)
      if (!wanted.has(workspaceId) && !this.#removed(workspaceId, userId)) now.add(workspaceId);
    for (const [workspaceId, role] of wanted)
      if (this.#granted(workspaceId, userId, role, managed.includes(workspaceId), nameIn(person.claims)))
        now.add(workspaceId);
    const { refreshToken, idToken } = person;
    identity.store.write((tx) => {
      const checkedAtMs = identity.nowMs();
      const account = { issuer, subject, managed: [...now].sort(), isActive: true, checkedAtMs };
      tx.put(providerAccounts, account, SYSTEM, userId);
      const tokens = JSON.stringify({ refreshToken: refreshToken.reveal(), idToken: idToken?.reveal() });
      vault.seal(tx, SYSTEM, sealedName(userId), tokens);
    });
    const { store } = identity;
    return [...store.idsUnder(userWorkspaces, SYSTEM, userId)].some(
      (id) => workspaceExists(store, id) && (wanted.has(id) || !now.has(id)),
    );
  }

  /** Returns whether a group manages the membership. A membership that an owner has added is not changed. */
  #granted(
    workspaceId: string,
    userId: UserId,
    role: Role,
    isManaged: boolean,
    name: string | null,
  ): boolean {
    const { identity, members } = this.#options;
    const { store } = identity;
    if (!workspaceExists(store, workspaceId)) return false;
    const id = workspaceId as WorkspaceId;
    const member = store.get(memberRecords, id, userId);
    if (member === undefined) {
      members.add(id, userId, { role, name });
      return true;
    }
    if (!isManaged) return false;
    if (member.role !== role) unlessLastOwner(() => members.change(id, userId, { role }));
    return true;
  }

  /** Removes a membership. Returns false and keeps the membership of a last owner. */
  #removed(workspaceId: string, userId: UserId): boolean {
    const { identity, members } = this.#options;
    const id = workspaceId as WorkspaceId;
    if (!workspaceExists(identity.store, id) || !identity.store.has(memberRecords, id, userId)) return true;
    return unlessLastOwner(() => members.remove(id, userId));
  }
}

function unlessLastOwner(change: () => unknown): boolean {
  try {
    change();
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'last_owner') return false;
    throw error;
  }
}

/**
 * Returns the highest role that the groups give in each workspace. Rows of the table have the form `group=workspace:role`;
 * everybody whom the provider signs in belongs to the group `*`.
 */
export function rolesOf(table: readonly string[], groups: ReadonlySet<string>): ReadonlyMap<string, Role> {
  const roles = new Map<string, Role>();
  for (const row of table) {
    const [, left = '', right = '', word] = /^([^=]*)=(.*):(\w+)$/.exec(row) ?? [];
    const [group, workspaceId] = [left.trimEnd(), right.trimStart()];
    const role = word as Role;
    const known = roles.get(workspaceId);
    const isOf = group === EVERYBODY || groups.has(group);
    if (isOf && (known === undefined || reaches(role, known))) roles.set(workspaceId, role);
  }
  return roles;
}

function groupsIn(claim: unknown): ReadonlySet<string> {
  const groups = Array.isArray(claim) ? claim : [claim];
  return new Set(groups.slice(0, MAX_GROUPS).filter((group) => typeof group === 'string'));
}

function nameIn({ name }: Readonly<Record<string, unknown>>): string | null {
  if (typeof name !== 'string') return null;
  const plain = cutText(name.replace(/[\p{Cc}\p{Surrogate}]/gu, ' ').trim(), 0, MAX_NAME_CHARACTERS);
  return plain === '' ? null : plain;
}

/** Returns a name that no datasource can have, because their slugs contain no colon. */
function sealedName(userId: string): string {
  return `sign-in:${userId}`;
}
