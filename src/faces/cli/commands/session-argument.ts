import { Argument } from 'commander';
import { readServiceAccess } from '#src/base/config/service-access.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';

/** Returns the argument for a session. `chosenSession` finds the session if the argument is left out. */
export function sessionArgument(): Argument {
  return new Argument('[session]', 'id of the session (default: SERVICE_SESSION_ID)');
}

/** Returns the session. Throws `CommandFailure` when neither the command line nor the environment names one. */
export function chosenSession(
  id: string | undefined,
  { env }: { readonly env: Readonly<Record<string, string | undefined>> },
): string {
  const sessionId = id ?? readServiceAccess(env).sessionId;
  if (sessionId !== undefined) return sessionId;
  const text =
    'Name a session, or set SERVICE_SESSION_ID: export SERVICE_SESSION_ID=$(troupe sessions open <notebook>)';
  throw new CommandFailure(text, EXIT.settings);
}
