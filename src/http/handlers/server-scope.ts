import type { TokenHolder } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';

/**
 * Throws `missing_scope` unless the token has one of the scopes and is bound to no workspace. `what`: the refused action, for the
 * message.
 */
export function requireServerScope(
  { scopes, isBound }: TokenHolder,
  allowed: readonly string[],
  what: string,
): void {
  if (!allowed.some((scope) => (scopes as readonly string[]).includes(scope)))
    throw new AppError('missing_scope', `The access token lacks the scope ${allowed.join(' or ')}.`);
  if (isBound) throw new AppError('missing_scope', `A token that is bound to a workspace may not ${what}.`);
}
