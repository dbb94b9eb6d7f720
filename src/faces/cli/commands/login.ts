import { hostname, userInfo } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { cutText } from '#src/base/text/cut-text.ts';
import { ApiError } from '#src/contract/client/api-error.ts';
import { createClient } from '#src/contract/client/client.ts';
import { beginCommandLine, fetchCommandLine } from '#src/contract/client/command-line-sign-in.ts';
import type { BegunCommandLine, CommandLineOutcome } from '#src/contract/wire/operations/sign-in.ts';
import { serverOf } from '../access.ts';
import type { CommandGroup } from '../command-group.ts';
import { pathOfLogins, storedLogin, storeLogin } from '../credentials.ts';
import { examples } from '../examples.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { printJson } from '../terminal.ts';

const MAX_MACHINE_CHARACTERS = 100;

/** `troupe login` and `troupe logout`: a personal access token, confirmed in the browser. */
export const login: CommandGroup = (program, { terminal, env, cwd, wantsJson }) => {
  const signIn = program
    .command('login')
    .description(
      'sign in: confirm this command line in a browser in which you have signed in. The command line then has an access token for ' +
        '90 days, in a file that only you can read.',
    )
    .argument('[server]', 'address of the server (default: SERVICE_BASE_URL, or the server of this machine)')
    .action(async (server: string | undefined, _, command) => {
      const baseUrl = serverOf({ env, cwd }, server);
      const client = createClient({ baseUrl });
      const begun = await beginCommandLine(client, machine());
      terminal.err(
        `Open this address in a browser:  ${begun.url}\nand type this code there:        ${begun.code}\n`,
      );
      const { token, userId, workspaceId, expiresAt } = await outcomeOf(client, begun);
      storeLogin(env, baseUrl, { accessToken: token, workspaceId });
      if (wantsJson(command)) return printJson(terminal, { baseUrl, userId, workspaceId, expiresAt });
      terminal.out(`Signed in to ${baseUrl} as ${userId}, in the workspace ${workspaceId}.\n`);
      terminal.err(`The token is in ${pathOfLogins(env)} and expires at ${expiresAt}.\n`);
    });
  examples(signIn, ['troupe login https://troupe.example', 'troupe login']);

  const signOut = program
    .command('logout')
    .description('sign out: revoke and forget the access token from troupe login')
    .argument(
      '[server]',
      'address of the server (default: SERVICE_BASE_URL, or the server of the last sign-in)',
    )
    .action(async (server: string | undefined, _, command) => {
      const baseUrl = serverOf({ env, cwd }, server);
      const stored = storedLogin(env, baseUrl);
      if (stored === undefined)
        throw new CommandFailure(`You have not signed in to ${baseUrl} (troupe login).`, EXIT.settings);
      const client = createClient({ baseUrl, ...stored });
      try {
        const { token } = await client.me();
        await client.accessTokens.delete(token.id);
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 401)) throw error; // the token was revoked or has expired
      }
      storeLogin(env, baseUrl, undefined);
      if (wantsJson(command)) printJson(terminal, { baseUrl, signedOut: true });
      else terminal.out(`Signed out of ${baseUrl}.\n`);
    });
  examples(signOut, ['troupe logout', 'troupe logout https://troupe.example']);
};

type Confirmed = Required<Omit<CommandLineOutcome, 'status'>>;

/** Resolves with the token once a person has confirmed. Rejects with `CommandFailure`. */
async function outcomeOf(
  client: ReturnType<typeof createClient>,
  { secret, intervalS }: BegunCommandLine,
): Promise<Confirmed> {
  for (;;) {
    await pause(intervalS * 1000); // the server sets the interval
    const { status, ...rest } = await fetchCommandLine(client, secret).catch(waitForTurn);
    if (status === 'confirmed') return rest as Confirmed;
    if (status === 'refused') throw new CommandFailure('The sign-in was refused in the browser.');
    if (status === 'ended')
      throw new CommandFailure(
        'The code has expired, or the person who confirmed it has signed out. To begin again, run troupe login.',
      );
  }
}

/**
 * Waits when others at the address of this machine have sent too many requests, and returns the outcome `waiting`. Rejects with
 * other errors.
 */
async function waitForTurn(error: unknown): Promise<CommandLineOutcome> {
  if (!(error instanceof ApiError && error.status === 429)) throw error;
  await pause((error.retryAfter ?? 1) * 1000);
  return { status: 'waiting' };
}

/** Returns the names of this user and machine for the page that asks for confirmation. */
function machine(): string {
  const name = `${userInfo().username}@${hostname()}`.replace(/\p{Cc}/gu, '');
  return cutText(name, 0, MAX_MACHINE_CHARACTERS);
}
