import type { OwnAccounts } from '#src/auth/own-account.ts';
import { OwnAccountSchema } from '#src/wire/identity.ts';
import { PageQuery } from '#src/wire/shape.ts';
import { ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** Who the caller is. */
export function meRoutes(accounts: OwnAccounts): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/me',
      operationId: 'getMe',
      summary: 'Read who you are',
      description:
        'The user and the access token of the request, and the workspaces that they give access to. This is the only ' +
        'operation that needs a token and no workspace: `Service-Workspace-Id` is ignored.',
      tags: ['Identity'],
      access: 'token',
      query: PageQuery,
      responses: { 200: { description: 'The caller.', schema: OwnAccountSchema } },
      errors: ['invalid_cursor'],
      handle: ({ holder, query }) => ok(accounts.read(holder, query)),
    }),
  ];
}
