import type { Command } from 'commander';
import type { CommandGroup } from '../command-group.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';

/** `troupe help`: replaces commander's own help command, which does not know commands inside of groups. */
export const help: CommandGroup = (program) => {
  program
    .helpCommand(false)
    .command('help')
    .description('show the help of a command: troupe help token create')
    .argument('[command...]')
    .action((words: readonly string[]) => {
      let found: Command = program;
      for (const word of words) {
        const next = found.commands.find((command) => [command.name(), ...command.aliases()].includes(word));
        if (next === undefined) {
          throw new CommandFailure(`There is no command ${words.join(' ')}. See: troupe help`, EXIT.usage);
        }
        found = next;
      }
      found.outputHelp();
    });
};
