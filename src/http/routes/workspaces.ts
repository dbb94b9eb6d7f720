import type { WorkspaceDeletion } from '#src/auth/workspace-deletion.ts';
import type { Workspaces } from '#src/auth/workspaces.ts';
import { NewWorkspaceSchema, WorkspaceSchema } from '#src/wire/identity.ts';
import { PageQuery, pageSchema } from '#src/wire/shape.ts';
import { created, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** Workspaces. */
export function workspaceRoutes(
  workspaces: Workspaces,
  deletion: Pick<WorkspaceDeletion, 'prepare' | 'delete'>,
): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/v3/workspaces',
      operationId: 'createWorkspace',
      summary: 'Create a workspace',
      description: 'You become its owner. This needs a token that is not bound to a workspace.',
      tags: ['Identity'],
      access: { action: 'workspace.create' },
      sharedTurn: true,
      body: NewWorkspaceSchema,
      responses: {
        201: {
          description: 'The workspace was created.',
          schema: WorkspaceSchema,
          headers: { location: 'The path of the workspace.' },
        },
      },
      checkAccess: ({ principal }) => workspaces.checkCreation(principal),
      handle({ principal, body }) {
        const workspace = workspaces.create(principal, body.name);
        return created(workspace, `/api/v3/workspaces/${workspace.id}`);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/workspaces',
      operationId: 'listWorkspaces',
      summary: 'List the workspaces that the token gives access to',
      tags: ['Identity'],
      access: { action: 'workspace.read' },
      readsStoreOnly: true,
      query: PageQuery,
      responses: {
        200: { description: 'A page of workspaces.', schema: pageSchema('WorkspacePage', WorkspaceSchema) },
      },
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) => ok(workspaces.list(principal, query)),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/workspaces/:workspaceId',
      operationId: 'getWorkspace',
      summary: 'Read a workspace',
      tags: ['Identity'],
      access: { action: 'workspace.read' },
      readsStoreOnly: true,
      responses: { 200: { description: 'The workspace.', schema: WorkspaceSchema } },
      handle: ({ principal, params }) => ok(workspaces.read(principal, params.workspaceId)),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/workspaces/:workspaceId',
      operationId: 'deleteWorkspace',
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
      responses: { 204: { description: 'The workspace was deleted.' } },
      errors: ['workspace_in_use', 'last_workspace'],
      prepare: ({ principal, params }) => deletion.prepare(principal, params.workspaceId),
      handle({ principal, params }) {
        deletion.delete(principal, params.workspaceId);
        return noContent();
      },
    }),
  ];
}
