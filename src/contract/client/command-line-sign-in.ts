/** Signing in with a command line, which a person confirms in a browser. */
import type { BegunCommandLine, CommandLineOutcome } from '../wire/operations/sign-in.ts';
import { pathOf } from '../wire/paths.ts';
import type { Client } from './client.ts';

/** Begins a sign-in. `machine` is shown to the person. Needs no token. */
export function beginCommandLine(client: Pick<Client, 'send'>, machine: string): Promise<BegunCommandLine> {
  return client.send({ method: 'POST', path: pathOf('beginCommandLineSignIn', {}), body: { machine } });
}

/** Resolves with the outcome, with the token if the person has confirmed. */
export function fetchCommandLine(client: Pick<Client, 'send'>, secret: string): Promise<CommandLineOutcome> {
  return client.send({ method: 'POST', path: pathOf('fetchCommandLineSignIn', {}), body: { secret } });
}
