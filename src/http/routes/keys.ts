import type { Principal } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import type { KeyringStore } from '#src/datasource/keys/keyring-store.ts';
import { noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const COMMON = { tags: ['Operations'], access: { action: 'keys.manage' }, home: 'server' } as const;

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
      ...OPERATIONS.listKeys,
      summary: 'List the keys of the keyring, without their values',
      ...COMMON,
      handle({ principal }) {
        requireUnbound(principal);
        return ok({ items: keys.states() });
      },
    }),
    defineRoute({
      ...OPERATIONS.addKey,
      summary: 'Add a key, which encrypts new connections',
      description: 'Existing connections stay encrypted with the earlier keys until a rotation.',
      ...COMMON,
      checkAccess: ({ principal }) => requireUnbound(principal),
      async handle({ principal }) {
        requireUnbound(principal);
        await keys.add();
        return ok({ items: keys.states() });
      },
    }),
    defineRoute({
      ...OPERATIONS.rotateKeys,
      summary: 'Add a key and encrypt everything with it',
      description:
        'Returns when all connections are encrypted with the new key. The earlier keys are kept until you ' +
        'delete them, because earlier backups need these keys. After a crash, call this operation again to ' +
        'finish.',
      ...COMMON,
      checkAccess: ({ principal }) => requireUnbound(principal),
      async handle({ principal }) {
        requireUnbound(principal);
        await keys.add();
        await keys.rotate();
        return ok({ items: keys.states() });
      },
    }),
    defineRoute({
      ...OPERATIONS.deleteKey,
      summary: 'Delete a key that encrypts nothing any more',
      description: 'Afterwards this keyring cannot open backups whose `manifest.json` names the key.',
      ...COMMON,
      errors: ['key_in_use'],
      async handle({ principal, params }) {
        requireUnbound(principal);
        await keys.delete(params.keyId);
        return noContent();
      },
    }),
  ];
}
