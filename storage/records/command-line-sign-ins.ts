import { defineRecord } from '../codec.ts';

/** A command line whose sign-in a person has to confirm. */
export interface CommandLineSignIn {
  readonly codeHash: string;
  /** The name of the program's machine, which the program has sent, and the address of its request. */
  readonly machine: string;
  readonly address: string;
  /** The network of the address, by which waiting sign-ins are counted. */
  readonly network: string;
  readonly expiresAtMs: number;
  /** The session of the person who has confirmed it, and the workspace; null while nobody has. */
  readonly confirmedBy: { readonly tokenId: string; readonly workspaceId: string } | null;
  readonly isRefused: boolean;
}

/** Written in shared turns. Key: SYSTEM, hash of the program's secret. */
export const commandLineSignIns = defineRecord<CommandLineSignIn>('command-line-sign-in', 1);

/**
 * Index from the hash of the code that a person types to the sign-in. The entry exists while the
 * sign-in waits. Key: SYSTEM, hash of the code.
 */
export const commandLineCodes = defineRecord<string>('command-line-code', 1);
