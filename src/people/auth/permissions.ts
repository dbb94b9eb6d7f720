/** The permissions: a table from each action to the lowest role and the scopes that it needs. */

import type { Principal, Requirements } from '#src/base/caller/principal.ts';
import type { Role } from '#src/base/caller/role.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { Scope } from '#src/contract/wire/identity.ts';

const RUNTIME: readonly Scope[] = ['workspaceRuntime:connect'];
const DATASOURCE: readonly Scope[] = ['workspaceRuntime:connect', 'datasource:read'];
const MANAGE: readonly Scope[] = ['workspace:manage'];

const PERMISSIONS = {
  'notebook.read': { role: 'viewer', scopes: RUNTIME },
  'notebook.write': { role: 'editor', scopes: RUNTIME },
  'notebook.delete': { role: 'editor', scopes: RUNTIME },
  'file.read': { role: 'viewer', scopes: RUNTIME },
  'file.write': { role: 'editor', scopes: RUNTIME },
  'package.read': { role: 'viewer', scopes: RUNTIME },
  'package.write': { role: 'editor', scopes: RUNTIME },
  'environment.read': { role: 'viewer', scopes: RUNTIME },
  'environment.write': { role: 'editor', scopes: RUNTIME },
  'session.read': { role: 'viewer', scopes: RUNTIME },
  'session.open': { role: 'editor', scopes: RUNTIME },
  'session.close': { role: 'editor', scopes: RUNTIME },
  'session.edit': { role: 'editor', scopes: RUNTIME },
  'session.interact': { role: 'editor', scopes: RUNTIME },
  'session.interrupt': { role: 'editor', scopes: RUNTIME },
  'run.read': { role: 'viewer', scopes: RUNTIME },
  'run.submit': { role: 'editor', scopes: RUNTIME },
  'run.cancel': { role: 'editor', scopes: RUNTIME },
  'run.delete': { role: 'editor', scopes: RUNTIME },
  'job.read': { role: 'viewer', scopes: RUNTIME },
  'job.write': { role: 'editor', scopes: RUNTIME },
  'hook.read': { role: 'editor', scopes: RUNTIME },
  'hook.write': { role: 'editor', scopes: RUNTIME },
  'code.execute': { role: 'editor', scopes: RUNTIME },
  'agent.read': { role: 'viewer', scopes: RUNTIME },
  'agent.open': { role: 'editor', scopes: RUNTIME },
  'agent.prompt': { role: 'editor', scopes: RUNTIME },
  'agent.close': { role: 'editor', scopes: RUNTIME },
  'agent.delete': { role: 'editor', scopes: RUNTIME },
  'agent.share': { role: 'editor', scopes: RUNTIME },
  'model.read': { role: 'viewer', scopes: RUNTIME },
  'model.test': { role: 'editor', scopes: RUNTIME },
  'model.manage': { role: 'owner', scopes: MANAGE },
  // A caller with the right to read a datasource can also change and delete it: there is no separate permission.
  'datasource.read': { role: 'viewer', scopes: DATASOURCE },
  'datasource.create': { role: 'editor', scopes: DATASOURCE },
  'datasource.write': { role: 'viewer', scopes: DATASOURCE },
  'datasource.delete': { role: 'viewer', scopes: DATASOURCE },
  'datasource.test': { role: 'viewer', scopes: DATASOURCE },
  'datasource.share': { role: 'editor', scopes: DATASOURCE },
  'audit.read': { role: 'owner', scopes: MANAGE },
  'keys.manage': { role: 'owner', scopes: MANAGE },
  'workspace.read': { role: 'viewer', scopes: [] },
  'workspace.create': { role: 'owner', scopes: MANAGE },
  'workspace.delete': { role: 'owner', scopes: MANAGE },
  'member.read': { role: 'owner', scopes: MANAGE },
  'member.write': { role: 'owner', scopes: MANAGE },
  // For the caller's own tokens. `AccessTokens` also shows owners the tokens of other members.
  'token.read': { role: 'viewer', scopes: MANAGE },
  'token.create': { role: 'viewer', scopes: MANAGE },
  'token.revoke': { role: 'viewer', scopes: MANAGE },
  // This action only opens the endpoint: each request that a tool makes is checked for its own action.
  'mcp.call': { role: 'viewer', scopes: RUNTIME },
  'inspect.read': { role: 'owner', scopes: RUNTIME },
  // Lets the caller put any session to sleep and wake it, including sessions of other members.
  'inspect.control': { role: 'owner', scopes: ['workspaceRuntime:connect', 'workspace:manage'] },
} as const satisfies Record<string, Requirements>;

/** Every action with its requirements. */
export const ACTIONS: ReadonlyMap<string, Requirements> = new Map(Object.entries(PERMISSIONS));

const RANK: Readonly<Record<Role, number>> = { viewer: 0, editor: 1, owner: 2 };

/** Returns whether `role` may do everything that `least` may. */
export function reaches(role: Role, least: Role): boolean {
  return RANK[role] >= RANK[least];
}

/** Throws `missing_scope` or `role_too_low`, in this order, when the caller may not do `action`. */
export function authorize({ role, scopes }: Principal, action: string): void {
  const needed = ACTIONS.get(action);
  invariant(needed !== undefined, 'An action is declared.', action);
  for (const scope of needed.scopes) {
    if (!scopes.includes(scope)) {
      throw new AppError('missing_scope', `The access token lacks the scope ${scope}.`);
    }
  }
  if (RANK[role] < RANK[needed.role]) throw roleTooLow(role, needed.role);
}

/** Returns the error for a caller whose role is below `least`. */
export function roleTooLow(role: Role, least: Role): AppError {
  return new AppError(
    'role_too_low',
    `This requires the role ${least}; your role in this workspace is ${role}.`,
  );
}
