import type { Command } from 'commander';
import type { Client } from '#src/contract/client/client.ts';
import type { ScreenDevice } from './full-screen.ts';
import type { Input } from './input.ts';
import type { FileLinks } from './run/file-links.ts';
import type { Terminal } from './terminal.ts';

/** The environment of every command. */
export interface CliContext {
  readonly terminal: Terminal;
  readonly input: Input;
  /** The terminal as a screen to draw on; undefined when standard output is not a terminal or cannot move its cursor. */
  readonly screen: ScreenDevice | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The arguments after `--`, which are also the last operands of the command. */
  readonly passedOn: readonly string[];
  /**
   * Returns a client for the server and the workspace that environment and options name. Throws `CommandFailure` when the server
   * is missing, or the workspace unless `needsWorkspace` is false.
   */
  connect(command: Command, options?: { readonly needsWorkspace: boolean }): Client;
  /** Returns the address of the server, without a trailing slash. Throws like `connect`. */
  baseUrl(command: Command): string;
  /** Returns the memory of notebook files for the server and the workspace. Throws like `connect`. */
  links(command: Command): FileLinks;
  /** Returns whether the output of `command` must be JSON. */
  wantsJson(command: Command): boolean;
}

/** Adds the commands of one group to the program. Each file in `commands/` exports a group. */
export type CommandGroup = (program: Command, context: CliContext) => void;
