import type { AccessTokens } from '#src/auth/tokens.ts';
import { AccessTokenSchema, CreatedAccessTokenSchema, NewAccessTokenSchema } from '#src/wire/identity.ts';
import { PageQuery, pageSchema } from '#src/wire/shape.ts';
import { created, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** Access tokens. */
export function accessTokenRoutes(tokens: AccessTokens): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      secretAnswer: true,
      path: '/api/v3/access-tokens',
      operationId: 'createAccessToken',
      summary: 'Create an access token',
      description:
        'Creates a token for yourself or, as an owner, for another member; the token of another member is bound to this ' +
        'workspace. You can only give scopes that the token of the request has. The response is the only one that ' +
        'contains the token itself.',
      tags: ['Identity'],
      access: { action: 'token.create' },
      sharedTurn: true,
      body: NewAccessTokenSchema,
      responses: {
        201: {
          description: 'The token was created.',
          schema: CreatedAccessTokenSchema,
          headers: { location: 'The path of the token.' },
        },
      },
      errors: ['not_found'],
      checkAccess: ({ principal, body }) => tokens.checkCreation(principal, body),
      handle({ principal, body }) {
        const { token, secret } = tokens.create(principal, body);
        return created({ ...token, token: secret.reveal() }, `/api/v3/access-tokens/${token.id}`);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/access-tokens',
      operationId: 'listAccessTokens',
      summary: 'List access tokens, oldest first',
      description:
        'Your own tokens. Owners also see the tokens of other members that are bound to this workspace.',
      tags: ['Identity'],
      access: { action: 'token.read' },
      readsStoreOnly: true,
      query: PageQuery,
      responses: {
        200: { description: 'A page of tokens.', schema: pageSchema('AccessTokenPage', AccessTokenSchema) },
      },
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) => ok(tokens.list(principal, query)),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/access-tokens/:tokenId',
      operationId: 'getAccessToken',
      summary: 'Read an access token',
      tags: ['Identity'],
      access: { action: 'token.read' },
      readsStoreOnly: true,
      responses: { 200: { description: 'The token, without its secret part.', schema: AccessTokenSchema } },
      handle: ({ principal, params }) => ok(tokens.read(principal, params.tokenId)),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/access-tokens/:tokenId',
      operationId: 'revokeAccessToken',
      summary: 'Revoke an access token',
      description: 'The token is refused from the next request on, and its open event streams end.',
      tags: ['Identity'],
      access: { action: 'token.revoke' },
      responses: { 204: { description: 'The token was revoked.' } },
      handle({ principal, params }) {
        tokens.revoke(principal, params.tokenId);
        return noContent();
      },
    }),
  ];
}
