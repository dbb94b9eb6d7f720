import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { AccessTokens } from '#src/people/auth/tokens.ts';
import { created, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** Access tokens. */
export function accessTokenRoutes(tokens: AccessTokens): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.createAccessToken,
      secretAnswer: true,
      summary: 'Create an access token',
      description:
        'Creates a token for yourself or, as an owner, for another member. The token of another member is ' +
        'bound to this workspace. You can only grant scopes that the token of your request has. The ' +
        'response is the only one that contains the token itself.',
      tags: ['Identity'],
      access: { action: 'token.create' },
      sharedTurn: true,
      errors: ['not_found'],
      checkAccess: ({ principal, body }) => tokens.checkCreation(principal, body),
      handle({ principal, body }) {
        const { token, secret } = tokens.create(principal, body);
        return created({ ...token, token: secret.reveal() }, pathOf('getAccessToken', { tokenId: token.id }));
      },
    }),
    defineRoute({
      ...OPERATIONS.listAccessTokens,
      summary: 'List access tokens, oldest first',
      description:
        'Your own tokens. Owners also see the tokens of other members that are bound to this workspace.',
      tags: ['Identity'],
      access: { action: 'token.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) => ok(tokens.list(principal, query)),
    }),
    defineRoute({
      ...OPERATIONS.getAccessToken,
      summary: 'Read an access token',
      tags: ['Identity'],
      access: { action: 'token.read' },
      readsStoreOnly: true,
      handle: ({ principal, params }) => ok(tokens.read(principal, params.tokenId)),
    }),
    defineRoute({
      ...OPERATIONS.revokeAccessToken,
      summary: 'Revoke an access token',
      description: 'The token is refused from the next request on, and its open event streams end.',
      tags: ['Identity'],
      access: { action: 'token.revoke' },
      handle({ principal, params }) {
        tokens.revoke(principal, params.tokenId);
        return noContent();
      },
    }),
  ];
}
