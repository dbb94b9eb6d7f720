import { Argument } from 'commander';
import { readServiceAccess } from '#src/config/service-access.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';

/** The session that a command is about; `sessionOf` says which one it is when it is left out. */
export function sessionArgument(): Argument {
  return new Argument('[session]', 'its id (default: SERVICE_SESSION_ID)');
}

/** Throws `CommandFailure` when neither the command line nor the environment names one. */
export function sessionOf(
  id: string | undefined,
  { env }: { readonly env: Readonly<Record<string, string | undefined>> },
): string {
  const sessionId = id ?? readServiceAccess(env).sessionId;
  if (sessionId !== undefined) return sessionId;
  const text =
    'Say which session, or set SERVICE_SESSION_ID: export SERVICE_SESSION_ID=$(troupe sessions open <notebook>)';
  throw new CommandFailure(text, EXIT.settings);
}
