import type { Command } from 'commander';
import type { Client } from '#src/client/client.ts';
import type { Input } from './input.ts';
import type { Terminal } from './terminal.ts';

/** What every command can use. */
export interface CliContext {
  readonly terminal: Terminal;
  readonly input: Input;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** A client of the server that the environment and the options of `command` name. Throws when they name none. */
  connect(command: Command): Client;
  /** Whether `command` was asked for JSON. */
  wantsJson(command: Command): boolean;
}

/** Adds the commands of one group to the program. One file in `commands/` exports one. */
export type CommandGroup = (program: Command, context: CliContext) => void;
