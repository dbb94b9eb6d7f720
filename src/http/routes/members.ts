import type { Members } from '#src/auth/members.ts';
import { MemberChangeSchema, MemberSchema, NewMemberSchema } from '#src/wire/identity.ts';
import { PageQuery, pageSchema } from '#src/wire/shape.ts';
import { created, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** Members of the workspace. */
export function memberRoutes(members: Members): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/v3/members',
      operationId: 'addMember',
      summary: 'Add a member to the workspace',
      description: 'Creates the user when there is none with this id.',
      tags: ['Identity'],
      access: { action: 'member.write' },
      body: NewMemberSchema,
      responses: {
        201: {
          description: 'The member was added.',
          schema: MemberSchema,
          headers: { location: 'The path of the member.' },
        },
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
      responses: {
        200: { description: 'A page of members.', schema: pageSchema('MemberPage', MemberSchema) },
      },
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
      body: MemberChangeSchema,
      responses: { 200: { description: 'The changed member.', schema: MemberSchema } },
      errors: ['last_owner'],
      handle: ({ principal, params, body }) => ok(members.change(principal.workspaceId, params.userId, body)),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/members/:userId',
      operationId: 'removeMember',
      summary: 'Remove a member',
      description: "Takes effect at once. The member's tokens that are bound to this workspace are revoked.",
      tags: ['Identity'],
      access: { action: 'member.write' },
      responses: { 204: { description: 'The member was removed.' } },
      errors: ['last_owner'],
      handle({ principal, params }) {
        members.remove(principal.workspaceId, params.userId);
        return noContent();
      },
    }),
  ];
}
