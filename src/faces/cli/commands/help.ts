import type { Command } from 'commander';
import type { CommandGroup } from '../command-group.ts';
import { CommandFailure, EXIT, EXIT_CODES, EXIT_CODES_TEXT } from '../exit-code.ts';
import { printJson } from '../terminal.ts';
import { describeOperations } from './api.ts';

/** `troupe help`: replaces commander's own help command, which does not know commands inside of groups. */
export const help: CommandGroup = (program) => {
  program
    .helpCommand(false)
    .command('help')
    .description('show the help of a command: troupe help token create')
    .argument('[command...]')
    .action(async (words: readonly string[]) => {
      if (words[0] === 'api') await describeOperations(program);
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

/** `troupe exit-codes`: explains the exit codes. */
export const exitCodes: CommandGroup = (program, { terminal, wantsJson }) => {
  program
    .command('exit-codes')
    .description('explain the exit codes')
    .addHelpText('after', EXIT_CODES_TEXT)
    .action((_, command) => {
      if (wantsJson(command)) printJson(terminal, EXIT_CODES);
      else terminal.out(`${EXIT_CODES_TEXT.trimStart()}\n`);
    });
};
