import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Principal } from '#src/base/caller/principal.ts';
import type { Role } from '#src/base/caller/role.ts';
import { Secret } from '#src/base/caller/secret.ts';
import { AppError } from '#src/base/errors/errors.ts';
import type { Scope } from '#src/contract/wire/identity.ts';
import { Authenticator } from '#src/people/auth/authenticator.ts';
import { bootstrap } from '#src/people/auth/bootstrap.ts';
import { Identity } from '#src/people/auth/identity.ts';
import { Members } from '#src/people/auth/members.ts';
import { AccessTokens } from '#src/people/auth/tokens.ts';
import { Workspaces } from '#src/people/auth/workspaces.ts';
import { openStore } from '#storage/open-store.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

export const START_MS = Date.parse('2030-01-01T00:00:00.000Z');
export const START = '2030-01-01T00:00:00.000Z';
export const BOOTSTRAP_TOKEN = 'bootstrap-token-of-the-tests';

/** A store at `path` that fails the test when a commit fails. Close it before the directory goes. */
export async function openTestStore(path: string) {
  return openStore(join(path, 'store'), (error) => {
    throw error;
  });
}

export interface Clock {
  ms: number;
}

/** A real store with workspace `home`, owner `owner` and BOOTSTRAP_TOKEN, under a clock that stands still. */
export async function openIdentity(t: TestContext) {
  const dataDir = temporaryDirectory(t);
  const store = await openTestStore(dataDir);
  t.after(() => store[Symbol.asyncDispose]());
  const clock: Clock = { ms: START_MS };
  const identity = new Identity(store, () => clock.ms);
  await bootstrap(identity, dataDir, { token: new Secret(BOOTSTRAP_TOKEN), workspaceId: 'home' });
  const authenticator = new Authenticator(identity);
  const tokens = new AccessTokens(identity);
  const members = new Members(identity);
  const workspaces = new Workspaces(identity);
  const enter = (token: string, workspaceId: string = 'home') =>
    authenticator.authenticate(`Bearer ${token}`, workspaceId);
  const owner = enter(BOOTSTRAP_TOKEN);

  /** Adds a member of workspace `home` with a token made by its owner. */
  function join(userId: string, role: Role, scopes: readonly Scope[] = ['workspaceRuntime:connect']) {
    members.add(owner.workspaceId, userId, { role });
    const { token, secret } = tokens.create(owner, { name: `of ${userId}`, scopes, userId });
    return { token, secret: secret.reveal(), principal: enter(secret.reveal()) };
  }
  return { dataDir, store, clock, identity, authenticator, tokens, members, workspaces, enter, owner, join };
}

/** The code an AppError is refused with; fails when nothing is refused. */
export function refusalOf(attempt: () => unknown): string {
  try {
    attempt();
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
  return assert.fail('nothing was refused');
}

export function principalWith(role: Role, scopes: readonly string[]): Principal {
  const owner: Principal = JSON.parse('{"workspaceId":"home","userId":"ada","tokenId":"tok_1"}');
  return { ...owner, role, scopes };
}
