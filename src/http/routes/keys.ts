import Type from 'typebox';
import { AppError } from '#src/core/errors.ts';
import type { Principal } from '#src/core/principal.ts';
import type { KeyringStore } from '#src/datasource/keys/keyring-store.ts';
import { ok } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';

const KeyList = Type.Object(
  {
    items: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          active: Type.Boolean({ description: 'It seals new connections.' }),
          sealed: Type.Integer({ description: 'Connections that it seals.' }),
        },
        { additionalProperties: false },
      ),
    ),
  },
  { $id: 'KeyList', additionalProperties: false },
);

/** The keyring is the server's, not a workspace's: only a token that is bound to no workspace may manage it. */
export function keyRoutes(keys: KeyringStore, isBound: (principal: Principal) => boolean): readonly Route[] {
  const requireUnbound = (principal: Principal): void => {
    if (isBound(principal))
      throw new AppError('missing_scope', 'A token of one workspace cannot manage the keyring.');
  };
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/keys',
      operationId: 'listKeys',
      summary: 'The keys of the keyring, never their values',
      tags: ['Operations'],
      access: { action: 'keys.manage' },
      responses: { 200: { description: 'The keys.', schema: KeyList } },
      handle({ principal }) {
        requireUnbound(principal);
        return ok({ items: keys.states() });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v3/keys',
      operationId: 'addKey',
      summary: 'Make a new key, which seals from now on',
      description: 'What is sealed stays sealed by the keys before, until a rotation.',
      tags: ['Operations'],
      access: { action: 'keys.manage' },
      body: Type.Object({}, { additionalProperties: false }),
      optionalBody: true,
      responses: { 200: { description: 'The keys now.', schema: KeyList } },
      async handle({ principal }) {
        requireUnbound(principal);
        await keys.add();
        return ok({ items: keys.states() });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v3/keys/rotate',
      operationId: 'rotateKeys',
      summary: 'Make a new key and seal everything with it',
      description: 'Answers when it is done; a rotation that a crash cut off goes on with the next call.',
      tags: ['Operations'],
      access: { action: 'keys.manage' },
      body: Type.Object({}, { additionalProperties: false }),
      optionalBody: true,
      responses: { 200: { description: 'The keys now.', schema: KeyList } },
      async handle({ principal }) {
        requireUnbound(principal);
        await keys.add();
        await keys.rotate();
        return ok({ items: keys.states() });
      },
    }),
  ];
}
