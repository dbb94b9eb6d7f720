import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';

/** `troupe serve`: runs the server. */
export const serve: CommandGroup = (program) => {
  const command = program
    .command('serve')
    .description('run the server in the foreground until SIGTERM or SIGINT')
    .action(async () => {
      await import('#src/main.ts');
    });
  examples(command, ['troupe serve', 'TROUPE_PORT=9000 TROUPE_DATA_DIR=/var/lib/troupe troupe serve']);
};
