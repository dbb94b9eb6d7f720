import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import type { OwnAccounts } from '#src/people/auth/own-account.ts';
import { ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** The operation that returns the caller's identity. */
export function meRoutes(accounts: OwnAccounts): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.getMe,
      summary: 'Read your own identity',
      description:
        'The user and the access token of the request, and the workspaces that the token gives access to. This ' +
        'is the only operation that needs a token but no workspace: `Service-Workspace-Id` is ignored.',
      tags: ['Identity'],
      access: 'token',
      errors: ['invalid_cursor'],
      handle: ({ holder, query }) => ok(accounts.read(holder, query)),
    }),
  ];
}
