import { importSetUp } from '#src/base/install/set-up-module.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';

/** The parts of set-up that the commands use. */
interface SetUp {
  setUp(): Promise<void>;
}

/** The functions of set-up that print its messages. */
interface SetUpConsole {
  reporting(work: () => Promise<void>): Promise<void>;
}

/** `troupe serve`: runs the server. `troupe setup`: only prepares it. */
export const serve: CommandGroup = (program, { terminal }) => {
  const command = program
    .command('serve')
    .summary('run the server in the foreground')
    .description(
      'run the server in the foreground until SIGTERM or SIGINT. The first start installs the Python environment, as troupe setup does.',
    )
    .action(async () => {
      await importSetUp('start');
    });
  examples(command, ['troupe serve', 'TROUPE_PORT=9000 TROUPE_DATA_DIR=/var/lib/troupe troupe serve']);

  const setup = program
    .command('setup')
    .summary('install the Python environment of the server')
    .description(
      'install the Python environment of the server into its installation. The user who installed Troupe runs this once; then another user can run the server.',
    )
    .action(async () => {
      const { reporting } = await importSetUp<SetUpConsole>('console');
      const { setUp } = await importSetUp<SetUp>('setup');
      await reporting(() => setUp());
      terminal.err('troupe: everything is set up\n');
    });
  examples(setup, ['sudo troupe setup']);
};
