import type { Members } from '#src/auth/members.ts';
import { MemberChangeSchema, MemberSchema, NewMemberSchema } from '#src/wire/identity.ts';
import { PageQuery, pageSchema } from '#src/wire/shape.ts';
import {
  ETAG_HEADER,
  NOT_MODIFIED,
  READ_CONDITION,
  requireState,
  tagged,
  unlessKnown,
  versionTag,
  WRITE_CONDITIONS,
} from '../reply/entity-tag.ts';
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
          headers: { location: 'The path of the member.', ...ETAG_HEADER },
        },
      },
      errors: ['already_exists'],
      handle({ principal, body: { userId, ...fields } }) {
        const member = members.add(principal.workspaceId, userId, fields);
        const reply = created(member, `/api/v3/members/${encodeURIComponent(userId)}`);
        return tagged(reply, versionTag(member.updatedAt));
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/members',
      operationId: 'listMembers',
      summary: 'List the members of the workspace, by user id',
      tags: ['Identity'],
      access: { action: 'member.read' },
      readsStoreOnly: true,
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
      readsStoreOnly: true,
      headers: READ_CONDITION,
      responses: {
        200: { description: 'The member.', schema: MemberSchema, headers: ETAG_HEADER },
        304: NOT_MODIFIED,
      },
      handle({ principal, params, headers }) {
        const member = members.read(principal.workspaceId, params.userId);
        return unlessKnown(ok(member), versionTag(member.updatedAt), headers);
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: '/api/v3/members/:userId',
      operationId: 'changeMember',
      summary: "Change a member's role or name",
      tags: ['Identity'],
      access: { action: 'member.write' },
      headers: WRITE_CONDITIONS,
      body: MemberChangeSchema,
      responses: { 200: { description: 'The changed member.', schema: MemberSchema, headers: ETAG_HEADER } },
      errors: ['last_owner', 'precondition_failed'],
      handle({ principal, params, headers, body }) {
        const changed = members.change(principal.workspaceId, params.userId, body, (updatedAt) =>
          requireState(headers, () => versionTag(updatedAt)),
        );
        return tagged(ok(changed), versionTag(changed.updatedAt));
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/members/:userId',
      operationId: 'removeMember',
      summary: 'Remove a member',
      description: "Takes effect at once. The member's tokens that are bound to this workspace are revoked.",
      tags: ['Identity'],
      access: { action: 'member.write' },
      headers: WRITE_CONDITIONS,
      responses: { 204: { description: 'The member was removed.' } },
      errors: ['last_owner', 'precondition_failed'],
      handle({ principal, params, headers }) {
        members.remove(principal.workspaceId, params.userId, (updatedAt) =>
          requireState(headers, () => versionTag(updatedAt)),
        );
        return noContent();
      },
    }),
  ];
}
