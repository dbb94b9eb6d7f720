import type { Command } from 'commander';
import type { CommandGroup } from '../command-group.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';

/** In place of commander's own, which knows no command below a group. */
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
          throw new CommandFailure(
            `There is no command ${words.join(' ')}; troupe help lists them.`,
            EXIT.usage,
          );
        }
        found = next;
      }
      found.outputHelp();
    });
};
