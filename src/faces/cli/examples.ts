import type { Command } from 'commander';

/** Adds examples, which people can copy, to the help of `command`, and returns it. */
export function examples(command: Command, lines: readonly string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}\n`).join('')}`);
}
