import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { Members } from '#src/people/auth/members.ts';
import { requireState, tagged, unlessKnown, versionTag } from '../reply/entity-tag.ts';
import { created, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/**
 * Every worker that gets an answer of the identity provider changes members and counts owners. So changes of members are decided
 * in a shared turn, not by the home of the workspace alone.
 */
const CHANGE = { access: { action: 'member.write' }, sharedTurn: true } as const;

/** Members of the workspace. */
export function memberRoutes(members: Members): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.addMember,
      summary: 'Add a member to the workspace',
      description: 'Creates the user when there is none with this id.',
      tags: ['Identity'],
      ...CHANGE,
      errors: ['already_exists'],
      handle({ principal, body: { userId, ...fields } }) {
        const member = members.add(principal.workspaceId, userId, fields);
        const reply = created(member, pathOf('getMember', { userId }));
        return tagged(reply, versionTag(member.updatedAt));
      },
    }),
    defineRoute({
      ...OPERATIONS.listMembers,
      summary: 'List the members of the workspace, by user id',
      tags: ['Identity'],
      access: { action: 'member.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) => ok(members.list(principal.workspaceId, query)),
    }),
    defineRoute({
      ...OPERATIONS.getMember,
      summary: 'Read a member',
      tags: ['Identity'],
      access: { action: 'member.read' },
      readsStoreOnly: true,
      handle({ principal, params, headers }) {
        const member = members.read(principal.workspaceId, params.userId);
        return unlessKnown(ok(member), versionTag(member.updatedAt), headers);
      },
    }),
    defineRoute({
      ...OPERATIONS.changeMember,
      summary: "Change a member's role or name",
      tags: ['Identity'],
      ...CHANGE,
      errors: ['last_owner', 'precondition_failed'],
      handle({ principal, params, headers, body }) {
        const changed = members.change(principal.workspaceId, params.userId, body, (updatedAt) =>
          requireState(headers, () => versionTag(updatedAt)),
        );
        return tagged(ok(changed), versionTag(changed.updatedAt));
      },
    }),
    defineRoute({
      ...OPERATIONS.removeMember,
      summary: 'Remove a member',
      description: "Takes effect at once. The member's tokens that are bound to this workspace are revoked.",
      tags: ['Identity'],
      ...CHANGE,
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
