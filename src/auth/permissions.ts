/** Who may do what: one table from each action to the lowest role and the scopes it takes. Pure. */
import { AppError } from '#src/core/errors.ts';
import type { Principal, Requirements, Role } from '#src/core/principal.ts';

/** What a token may be used for, however much its user may do. */
export const SCOPES = ['workspaceRuntime:connect', 'datasource:read', 'workspace:manage'] as const;

export type Scope = (typeof SCOPES)[number];

const RUNTIME: readonly Scope[] = ['workspaceRuntime:connect'];
const DATASOURCE: readonly Scope[] = ['workspaceRuntime:connect', 'datasource:read'];
const MANAGE: readonly Scope[] = ['workspace:manage'];

const PERMISSIONS = {
  'notebook.read': { role: 'viewer', scopes: RUNTIME },
  'notebook.write': { role: 'editor', scopes: RUNTIME },
  'notebook.delete': { role: 'editor', scopes: RUNTIME },
  'environment.read': { role: 'viewer', scopes: RUNTIME },
  'environment.write': { role: 'editor', scopes: RUNTIME },
  'session.read': { role: 'viewer', scopes: RUNTIME },
  'session.open': { role: 'editor', scopes: RUNTIME },
  'session.close': { role: 'editor', scopes: RUNTIME },
  'run.read': { role: 'viewer', scopes: RUNTIME },
  'run.submit': { role: 'editor', scopes: RUNTIME },
  'run.cancel': { role: 'editor', scopes: RUNTIME },
  'code.execute': { role: 'editor', scopes: RUNTIME },
  'agent.read': { role: 'viewer', scopes: RUNTIME },
  'agent.open': { role: 'editor', scopes: RUNTIME },
  'agent.prompt': { role: 'editor', scopes: RUNTIME },
  'agent.close': { role: 'editor', scopes: RUNTIME },
  'agent.share': { role: 'editor', scopes: RUNTIME },
  'model.read': { role: 'viewer', scopes: RUNTIME },
  'model.test': { role: 'editor', scopes: RUNTIME },
  'model.manage': { role: 'owner', scopes: MANAGE },
  // Read access to datasources governs everything about them: there is no separate permission to change one.
  'datasource.read': { role: 'viewer', scopes: DATASOURCE },
  'datasource.create': { role: 'editor', scopes: DATASOURCE },
  'datasource.write': { role: 'viewer', scopes: DATASOURCE },
  'datasource.delete': { role: 'viewer', scopes: DATASOURCE },
  'datasource.test': { role: 'viewer', scopes: DATASOURCE },
  'datasource.query': { role: 'viewer', scopes: DATASOURCE },
  'datasource.share': { role: 'editor', scopes: DATASOURCE },
  'audit.read': { role: 'owner', scopes: MANAGE },
  'keys.manage': { role: 'owner', scopes: MANAGE },
  'workspace.read': { role: 'viewer', scopes: [] },
  'workspace.create': { role: 'owner', scopes: MANAGE },
  'member.read': { role: 'owner', scopes: MANAGE },
  'member.write': { role: 'owner', scopes: MANAGE },
  // One's own; those of others are an owner's, which `AccessTokens` decides.
  'token.read': { role: 'viewer', scopes: MANAGE },
  'token.create': { role: 'viewer', scopes: MANAGE },
  'token.revoke': { role: 'viewer', scopes: MANAGE },
  'inspect.read': { role: 'owner', scopes: RUNTIME },
} as const satisfies Record<string, Requirements>;

export type Action = keyof typeof PERMISSIONS;

/** Every action, for the documentation. */
export const ACTIONS: ReadonlyMap<string, Requirements> = new Map(Object.entries(PERMISSIONS));

const RANK: Readonly<Record<Role, number>> = { viewer: 0, editor: 1, owner: 2 };

/** Whether `role` includes what `least` may do. */
export function reaches(role: Role, least: Role): boolean {
  return RANK[role] >= RANK[least];
}

export function isScope(text: string): text is Scope {
  return SCOPES.some((scope) => scope === text);
}

/** Throws `missing_scope` or `role_too_low`; the scope of the token is judged first. */
export function authorize({ role, scopes }: Principal, action: string): void {
  const needed = ACTIONS.get(action);
  if (needed === undefined) throw new Error(`There is no action ${action}.`);
  for (const scope of needed.scopes) {
    if (!scopes.includes(scope)) {
      throw new AppError('missing_scope', `The access token lacks the scope ${scope}.`);
    }
  }
  if (!reaches(role, needed.role)) throw roleTooLow(role, needed.role);
}

export function roleTooLow(role: Role, least: Role): AppError {
  return new AppError('role_too_low', `This takes the role ${least}; yours in this workspace is ${role}.`);
}
