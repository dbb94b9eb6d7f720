import { effectiveSettings, settingsTable } from '#src/config/report.ts';
import { loadConfig } from '#src/config.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { printList } from '../terminal.ts';

/** `troupe config`: the settings of the server. */
export const config: CommandGroup = (program, { terminal, env, cwd, wantsJson }) => {
  const command = program
    .command('config')
    .summary('show the settings of the server')
    .description('show every setting with its value and its source; secrets are hidden')
    .option('--markdown', 'print the table of the documentation instead')
    .action((options: { markdown?: boolean }, command) => {
      if (options.markdown === true) return terminal.out(settingsTable());
      const settings = effectiveSettings(loadConfig(env, { cwd }));
      printList(
        terminal,
        settings,
        [
          { title: 'setting', of: ({ env }) => env },
          { title: 'value', of: ({ value, unit }) => shown(value, unit) },
          { title: 'from', of: ({ source }) => source },
        ],
        wantsJson(command),
      );
    });
  examples(command, ['troupe config', 'TROUPE_PORT=9000 troupe config --json', 'troupe config --markdown']);
};

function shown(value: unknown, unit: string | null): string | null {
  if (value === null) return null;
  const text = Array.isArray(value) ? value.join(',') || 'none' : String(value);
  return unit === null ? text : `${text} ${unit}`;
}
