import type { Command } from 'commander';
import { allowFile } from '#src/base/config/allowed-files.ts';
import { CONFIG_FILE } from '#src/base/config/file.ts';
import { effectiveSettings, settingsTable } from '#src/base/config/report.ts';
import { commandConfig } from '../access.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { printJson, printList } from '../terminal.ts';

/** `troupe config`: the settings of the server, and whether commands obey the settings file of the folder. */
export const config: CommandGroup = (program, { terminal, env, cwd, wantsJson }) => {
  const command = program
    .command('config')
    .summary('show the settings of the server')
    .description('show every setting with its value and its source; secrets are hidden')
    .option('--markdown', 'print the table of the documentation instead')
    .action((options: { markdown?: boolean }, command) => {
      if (options.markdown === true) return terminal.out(settingsTable());
      const settings = effectiveSettings(commandConfig({ env, cwd }));
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
  examples(command, [
    'troupe config',
    'TROUPE_PORT=9000 troupe config --json',
    'troupe config --markdown',
    'troupe config allow',
  ]);

  const setAllowed = (isAllowed: boolean, command: Command) => {
    const file = allowFile(env, cwd, isAllowed);
    if (file === undefined)
      throw new CommandFailure(
        `This folder has no ${CONFIG_FILE} that only you or root can write.`,
        EXIT.settings,
      );
    if (wantsJson(command)) return printJson(terminal, { file, isAllowed });
    terminal.out(`${file} is ${isAllowed ? 'obeyed, until it changes' : 'ignored'}\n`);
  };
  const allow = command
    .command('allow')
    .summary('let commands obey the settings file of this folder')
    .description(
      `let commands obey the ${CONFIG_FILE} of this folder until it changes. The file decides which server gets your token and which\n` +
        'programs are started, so read the file first. A server that is started in the folder allows the file, too.',
    )
    .action((_, command) => setAllowed(true, command));
  examples(allow, ['troupe config allow']);
  const deny = command
    .command('deny')
    .summary('let commands ignore the settings file of this folder again')
    .description(`let commands ignore the ${CONFIG_FILE} of this folder again`)
    .action((_, command) => setAllowed(false, command));
  examples(deny, ['troupe config deny']);
};

function shown(value: unknown, unit: string | null): string | null {
  if (value === null) return null;
  const text = Array.isArray(value) ? value.join(',') || 'none' : String(value);
  return unit === null ? text : `${text} ${unit}`;
}
