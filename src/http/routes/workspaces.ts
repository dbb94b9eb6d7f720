import type { WorkspaceDeletion } from '#src/auth/workspace-deletion.ts';
import type { Workspaces } from '#src/auth/workspaces.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
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
      description: 'You become its owner. This needs a token that is not bound to a workspace.',
      tags: ['Identity'],
      access: { action: 'workspace.create' },
      sharedTurn: true,
      checkAccess: ({ principal }) => workspaces.checkCreation(principal),
      handle({ principal, body }) {
        const workspace = workspaces.create(principal, body.name);
        return created(workspace, `/api/v3/workspaces/${workspace.id}`);
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
        'be an owner of it and of another workspace, and all of its sessions must be closed. The deletion is noted in the audit ' +
        'of the workspace that `Service-Workspace-Id` names, if that is another one, and in the log of the server.',
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
