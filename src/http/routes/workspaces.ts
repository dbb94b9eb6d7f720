import type { WorkspaceId } from '#src/base/ids.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { AuditTrail } from '#src/people/audit/audit-trail.ts';
import type { WorkspaceDeletion } from '#src/people/auth/workspace-deletion.ts';
import type { LimitsOfWorkspaces } from '#src/people/auth/workspace-limits.ts';
import type { Workspaces } from '#src/people/auth/workspaces.ts';
import { created, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** Workspaces. */
export function workspaceRoutes(
  workspaces: Workspaces,
  deletion: Pick<WorkspaceDeletion, 'prepare' | 'delete'>,
): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.createWorkspace,
      summary: 'Create a workspace',
      description:
        'You become the owner of the workspace. This needs a token that is not bound to a workspace.',
      tags: ['Identity'],
      access: { action: 'workspace.create' },
      sharedTurn: true,
      checkAccess: ({ principal }) => workspaces.checkCreation(principal),
      handle({ principal, body }) {
        const workspace = workspaces.create(principal, body.name);
        return created(workspace, pathOf('getWorkspace', { workspaceId: workspace.id }));
      },
    }),
    defineRoute({
      ...OPERATIONS.listWorkspaces,
      summary: 'List the workspaces that the token gives access to',
      tags: ['Identity'],
      access: { action: 'workspace.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) => ok(workspaces.list(principal, query)),
    }),
    defineRoute({
      ...OPERATIONS.getWorkspace,
      summary: 'Read a workspace',
      tags: ['Identity'],
      access: { action: 'workspace.read' },
      readsStoreOnly: true,
      handle: ({ principal, params }) => ok(workspaces.read(principal, params.workspaceId)),
    }),
    defineRoute({
      ...OPERATIONS.deleteWorkspace,
      summary: 'Delete a workspace',
      description:
        'Deletes the workspace for ever with everything in it: notebooks, runs, conversations, datasources, keys of models, ' +
        'members, the access tokens that are bound to it, and its audit. Only its files stay on the disk of the server. You must ' +
        'be an owner of this workspace and of another one, and all sessions of this workspace must be closed. The deletion is noted in the log ' +
        'of the server, and in the audit of the workspace that `Service-Workspace-Id` names, if that is another workspace.',
      tags: ['Identity'],
      access: { action: 'workspace.delete' },
      home: 'named-workspace',
      sharedTurn: true,
      errors: ['workspace_in_use', 'last_workspace'],
      prepare: ({ principal, params }) => deletion.prepare(principal, params.workspaceId),
      handle({ principal, params }) {
        deletion.delete(principal, params.workspaceId);
        return noContent();
      },
    }),
  ];
}

/** The limits of one workspace, which the operator of the server sets. */
export function workspaceLimitRoutes(limits: LimitsOfWorkspaces, audit: AuditTrail): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.getWorkspaceLimits,
      summary: 'Read the limits of a workspace',
      description:
        'Members of the workspace can read its limits, and so can operators, whose token has the scope `server:manage`.',
      tags: ['Identity'],
      access: 'token',
      readsStoreOnly: true,
      errors: ['not_found'],
      handle: ({ holder, params }) => ok(limits.read(holder, params.workspaceId)),
    }),
    defineRoute({
      ...OPERATIONS.setWorkspaceLimits,
      summary: 'Set the limits of a workspace',
      description:
        'A limit that is absent or null is taken from the settings again. The request needs a token with the scope ' +
        '`server:manage` that is not bound to a workspace; its user need not be a member. The limits ' +
        'apply as soon as the response is sent. A lower limit ends no running work, but new work is refused ' +
        'until the workspace is below the limit. A request beyond a limit gets 429 `quota_exceeded` with the member `limit`: ' +
        'its `name`, `of` (`workspace` or `user`) and `max`. The change is recorded in the audit of the ' +
        'workspace.',
      tags: ['Identity'],
      access: 'token',
      audited: true,
      sharedTurn: true,
      whileFull: true,
      errors: ['not_found', 'missing_scope'],
      checkAccess: ({ holder }) => limits.checkChange(holder),
      handle({ holder, params, body, remoteAddress, requestId }) {
        const changed = limits.replace(holder, params.workspaceId, body);
        const { userId, tokenId } = holder;
        const workspaceId = params.workspaceId as WorkspaceId;
        const detail = changed.set
          .map((name) => `${name}=${changed[name as keyof typeof body] ?? 'none'}`)
          .join(' ');
        audit.note(
          { principal: { workspaceId, userId, tokenId }, address: remoteAddress, requestId },
          { action: 'workspace.limits', target: workspaceId, outcome: 'done', detail },
        );
        return ok(changed);
      },
    }),
  ];
}
