import type { CommandGroup } from '../command-group.ts';

export const serve: CommandGroup = (program) => {
  program
    .command('serve')
    .description('run the server in the foreground, until SIGTERM or SIGINT')
    .action(async () => {
      await import('#src/main.ts');
    });
};
