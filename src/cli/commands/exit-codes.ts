import type { CommandGroup } from '../command-group.ts';
import { EXIT_CODES, EXIT_CODES_TEXT } from '../exit-code.ts';
import { printJson } from '../terminal.ts';

export const exitCodes: CommandGroup = (program, { terminal, wantsJson }) => {
  program
    .command('exit-codes')
    .description('say what the exit codes mean')
    .addHelpText('after', EXIT_CODES_TEXT)
    .action((_, command) => {
      if (wantsJson(command)) printJson(terminal, EXIT_CODES);
      else terminal.out(`${EXIT_CODES_TEXT.trimStart()}\n`);
    });
};
