import type { Command } from 'commander';

/** Adds command lines that people can copy to the help of `command`. */
export function examples(command: Command, lines: readonly string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}\n`).join('')}`);
}
