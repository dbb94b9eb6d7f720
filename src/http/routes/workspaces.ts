import Type from 'typebox';
import type { Workspaces } from '#src/auth/workspaces.ts';
import { created, ok } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { DisplayName, WorkspaceSchema } from '../schemas/identity.ts';
import { PageQuery, pageSchema } from '../schemas/paging.ts';

export function workspaceRoutes(workspaces: Workspaces): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/v3/workspaces',
      operationId: 'createWorkspace',
      summary: 'Create a workspace',
      description: 'The caller becomes its owner. Takes a token that is not bound to a workspace.',
      tags: ['Identity'],
      access: { action: 'workspace.create' },
      body: Type.Object({ name: DisplayName }, { additionalProperties: false }),
      responses: {
        201: { description: 'Created.', schema: WorkspaceSchema, headers: { location: 'The workspace.' } },
      },
      handle({ principal, body }) {
        const workspace = workspaces.create(principal, body.name);
        return created(workspace, `/api/v3/workspaces/${workspace.id}`);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/workspaces',
      operationId: 'listWorkspaces',
      summary: 'List the workspaces that the token opens',
      tags: ['Identity'],
      access: { action: 'workspace.read' },
      query: PageQuery,
      responses: { 200: { description: 'A page.', schema: pageSchema('WorkspacePage', WorkspaceSchema) } },
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
      responses: { 200: { description: 'The workspace.', schema: WorkspaceSchema } },
      handle: ({ principal, params }) => ok(workspaces.read(principal, params.workspaceId)),
    }),
  ];
}
