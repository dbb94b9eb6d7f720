import Type from 'typebox';
import type { Members } from '#src/auth/members.ts';
import { created, noContent, ok } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { DisplayName, MemberSchema, RoleSchema, UserId } from '../schemas/identity.ts';
import { nullable, PageQuery, pageSchema } from '../schemas/paging.ts';

export function memberRoutes(members: Members): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/v3/members',
      operationId: 'addMember',
      summary: 'Add a member to the workspace',
      description: 'A user that is not known yet is created.',
      tags: ['Identity'],
      access: { action: 'member.write' },
      body: Type.Object(
        { userId: UserId, role: RoleSchema, name: Type.Optional(nullable(DisplayName)) },
        { additionalProperties: false },
      ),
      responses: {
        201: { description: 'Added.', schema: MemberSchema, headers: { location: 'The member.' } },
      },
      errors: ['already_exists'],
      handle({ principal, body: { userId, ...fields } }) {
        const member = members.add(principal.workspaceId, userId, fields);
        return created(member, `/api/v3/members/${encodeURIComponent(userId)}`);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/members',
      operationId: 'listMembers',
      summary: 'List the members of the workspace, by user id',
      tags: ['Identity'],
      access: { action: 'member.read' },
      query: PageQuery,
      responses: { 200: { description: 'A page.', schema: pageSchema('MemberPage', MemberSchema) } },
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) => ok(members.list(principal.workspaceId, query)),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/members/:userId',
      operationId: 'getMember',
      summary: 'Read a member',
      tags: ['Identity'],
      access: { action: 'member.read' },
      responses: { 200: { description: 'The member.', schema: MemberSchema } },
      handle: ({ principal, params }) => ok(members.read(principal.workspaceId, params.userId)),
    }),
    defineRoute({
      method: 'PATCH',
      path: '/api/v3/members/:userId',
      operationId: 'changeMember',
      summary: "Change a member's role or name",
      tags: ['Identity'],
      access: { action: 'member.write' },
      body: Type.Object(
        { role: Type.Optional(RoleSchema), name: Type.Optional(nullable(DisplayName)) },
        { additionalProperties: false, minProperties: 1 },
      ),
      responses: { 200: { description: 'The member.', schema: MemberSchema } },
      errors: ['last_owner'],
      handle: ({ principal, params, body }) => ok(members.change(principal.workspaceId, params.userId, body)),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/members/:userId',
      operationId: 'removeMember',
      summary: 'Remove a member',
      description: "Acts at once, and revokes the member's tokens that are bound to this workspace.",
      tags: ['Identity'],
      access: { action: 'member.write' },
      responses: { 204: { description: 'Removed.' } },
      errors: ['last_owner'],
      handle({ principal, params }) {
        members.remove(principal.workspaceId, params.userId);
        return noContent();
      },
    }),
  ];
}
