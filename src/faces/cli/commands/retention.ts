import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { printJson } from '../terminal.ts';

/** `troupe retention`: the deletion of old records. */
export const retention: CommandGroup = (program, { terminal, connect, wantsJson }) => {
  const group = program
    .command('retention')
    .description('deletion of old records (TROUPE_KEEP_RUNS_DAYS and others)');
  const confirm = group
    .command('confirm')
    .description(
      'confirm that the clock of the server is right; for the warning that no old records are deleted because the clock seems to be ahead',
    )
    .action(async (_, command) => {
      await connect(command, { needsWorkspace: false }).retention.confirmClock();
      if (wantsJson(command)) printJson(terminal, { confirmed: true });
      else terminal.out('The clock is confirmed. Old records are deleted within an hour.\n');
    });
  examples(confirm, ['troupe retention confirm']);
};
