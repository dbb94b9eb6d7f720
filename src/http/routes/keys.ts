import { AppError } from '#src/core/errors.ts';
import type { Principal } from '#src/core/principal.ts';
import type { KeyringStore } from '#src/datasource/keys/keyring-store.ts';
import { KeyListSchema } from '#src/wire/operations.ts';
import { EmptyBodySchema } from '#src/wire/shape.ts';
import { noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const COMMON = { tags: ['Operations'], access: { action: 'keys.manage' }, home: 'server' } as const;
const NO_BODY = { body: EmptyBodySchema, optionalBody: true } as const;

/** The keyring. It belongs to the server, not to a workspace, so tokens that are bound to a workspace cannot manage it. */
export function keyRoutes(keys: KeyringStore, isBound: (principal: Principal) => boolean): readonly Route[] {
  const requireUnbound = (principal: Principal): void => {
    if (isBound(principal))
      throw new AppError(
        'missing_scope',
        'A token that is bound to one workspace cannot manage the keyring.',
      );
  };
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/keys',
      operationId: 'listKeys',
      summary: 'List the keys of the keyring, without their values',
      ...COMMON,
      responses: { 200: { description: 'The keys.', schema: KeyListSchema } },
      handle({ principal }) {
        requireUnbound(principal);
        return ok({ items: keys.states() });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v3/keys',
      operationId: 'addKey',
      summary: 'Add a key, which encrypts new connections',
      description: 'Existing connections stay encrypted with the earlier keys until a rotation.',
      ...COMMON,
      ...NO_BODY,
      checkAccess: ({ principal }) => requireUnbound(principal),
      responses: { 200: { description: 'The keys after the change.', schema: KeyListSchema } },
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
      summary: 'Add a key and encrypt everything with it',
      description:
        'Returns when all connections are encrypted with the new key. The earlier keys stay, because backups that were made ' +
        'before need them, until they are deleted. After a crash, call it again to finish.',
      ...COMMON,
      ...NO_BODY,
      checkAccess: ({ principal }) => requireUnbound(principal),
      responses: { 200: { description: 'The keys after the change.', schema: KeyListSchema } },
      async handle({ principal }) {
        requireUnbound(principal);
        await keys.add();
        await keys.rotate();
        return ok({ items: keys.states() });
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/keys/:keyId',
      operationId: 'deleteKey',
      summary: 'Delete a key that encrypts nothing any more',
      description: 'Backups whose `manifest.json` names the key can then not be opened with this keyring.',
      ...COMMON,
      responses: { 204: { description: 'The key was deleted.' } },
      errors: ['key_in_use'],
      async handle({ principal, params }) {
        requireUnbound(principal);
        await keys.delete(params.keyId);
        return noContent();
      },
    }),
  ];
}
