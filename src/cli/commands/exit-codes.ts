import type { CommandGroup } from '../command-group.ts';
import { EXIT_CODES, EXIT_CODES_TEXT } from '../exit-code.ts';
import { printJson } from '../terminal.ts';

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
