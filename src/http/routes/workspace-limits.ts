import type { AuditTrail } from '#src/audit/audit-trail.ts';
import type { WorkspaceLimits } from '#src/auth/workspace-limits.ts';
import type { WorkspaceId } from '#src/core/ids.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** The limits of one workspace, which the operator of the server sets. */
export function workspaceLimitRoutes(limits: WorkspaceLimits, audit: AuditTrail): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.getWorkspaceLimits,
      summary: 'Read the limits of a workspace',
      description:
        'For its members, and for operators of the server, who have a token with the scope `server:manage`.',
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
        'Limits that are absent or null become those of the settings of the server. It needs a token with the scope ' +
        '`server:manage` that is not bound to a workspace; its user need not be a member. The limits are in force when the ' +
        'request is answered. A lower limit ends nothing: nothing more begins until there is less. What reaches a limit gets ' +
        '429 `quota_exceeded` with the member `limit`: its `name`, `of` (`workspace` or `user`) and `max`. The change is in the ' +
        'audit of the workspace.',
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
