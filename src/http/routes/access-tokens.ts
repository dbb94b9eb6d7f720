import Type from 'typebox';
import type { AccessTokens } from '#src/auth/tokens.ts';
import { created, noContent, ok } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import {
  AccessTokenSchema,
  DisplayName,
  NewAccessTokenSchema,
  ScopeSchema,
  UserId,
} from '../schemas/identity.ts';
import { PageQuery, pageSchema, Timestamp } from '../schemas/paging.ts';

export function accessTokenRoutes(tokens: AccessTokens): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      secretAnswer: true,
      path: '/api/v3/access-tokens',
      operationId: 'createAccessToken',
      summary: 'Create an access token',
      description:
        'For oneself, or by an owner for a member: such a token is bound to this workspace. It cannot have a scope ' +
        'that the token of the request lacks. The answer shows the token, this once.',
      tags: ['Identity'],
      access: { action: 'token.create' },
      body: Type.Object(
        {
          name: DisplayName,
          scopes: Type.Array(ScopeSchema, { minItems: 1, uniqueItems: true }),
          userId: Type.Optional(UserId),
          expiresAt: Type.Optional(Timestamp),
        },
        { additionalProperties: false },
      ),
      responses: {
        201: { description: 'Created.', schema: NewAccessTokenSchema, headers: { location: 'The token.' } },
      },
      errors: ['not_found'],
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
      description: "One's own; for an owner also those of the members that are bound to this workspace.",
      tags: ['Identity'],
      access: { action: 'token.read' },
      query: PageQuery,
      responses: {
        200: { description: 'A page.', schema: pageSchema('AccessTokenPage', AccessTokenSchema) },
      },
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) => ok(tokens.list(principal, query)),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/access-tokens/:tokenId',
      operationId: 'getAccessToken',
      summary: 'Read what is known of an access token',
      tags: ['Identity'],
      access: { action: 'token.read' },
      responses: { 200: { description: 'The token, without its secret.', schema: AccessTokenSchema } },
      handle: ({ principal, params }) => ok(tokens.read(principal, params.tokenId)),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/access-tokens/:tokenId',
      operationId: 'revokeAccessToken',
      summary: 'Revoke an access token',
      description: 'Acts on the next request.',
      tags: ['Identity'],
      access: { action: 'token.revoke' },
      responses: { 204: { description: 'Revoked.' } },
      handle({ principal, params }) {
        tokens.revoke(principal, params.tokenId);
        return noContent();
      },
    }),
  ];
}
