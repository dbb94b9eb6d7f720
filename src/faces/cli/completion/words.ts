import type { Command } from 'commander';
import { COMPLETE_IDS, ID_KINDS } from '../commands/complete-ids.ts';

/** The possible words after `path`, which is empty for the program itself. */
export interface CommandWords {
  readonly path: string;
  /** Subcommands and values of arguments. */
  readonly words: readonly string[];
  readonly options: readonly string[];
  /** The kind of ids that can follow; `null` when no id can. Completion asks the server for these ids. */
  readonly ids: string | null;
  readonly files: boolean;
}

const GLOBALS = ['--json', '--workspace', '--help'];

/** Returns the words of every command, each group before its members. */
export function completionWords(program: Command): CommandWords[] {
  const found: CommandWords[] = [];
  const visit = (command: Command, path: readonly string[]) => {
    const own =
      command === program ? [] : command.options.flatMap(({ long }) => (long == null ? [] : [long]));
    const values = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
    const names = command.registeredArguments.map((argument) => argument.name());
    const children = command.commands.filter((child) => child.name() !== COMPLETE_IDS);
    found.push({
      path: path.join(' '),
      words: [...children.map((child) => child.name()), ...values],
      options: [...own, ...GLOBALS],
      ids: names.find((name) => name in ID_KINDS) ?? null,
      files: names.includes('file'),
    });
    for (const child of children) visit(child, [...path, child.name()]);
  };
  visit(program, []);
  return found;
}
