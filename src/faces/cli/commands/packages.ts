import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '#src/contract/client/client.ts';
import type { AddedPackages, WorkspacePackage, WorkspacePackageList } from '#src/contract/wire/packages.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { readPlain } from '../plain-path.ts';
import { LiveLine } from '../run/live-line.ts';
import { type ListColumn, printJson, printList, type Terminal } from '../terminal.ts';

const COLUMNS: readonly ListColumn<WorkspacePackage>[] = [
  { title: 'package', of: ({ name }) => name },
  { title: 'requirement', of: ({ requirement }) => requirement },
  { title: 'added by', of: ({ createdBy }) => createdBy },
  { title: 'added at', of: ({ createdAt }) => createdAt },
];
const POLL_MS = 500;

/** `troupe packages`: packages that all notebooks of the workspace can import, in addition to the server's own. */
export const packages: CommandGroup = (program, { terminal, cwd, connect, wantsJson }) => {
  const group = program
    .command('packages')
    .description('Python packages that all notebooks of the workspace have');

  const list = group
    .command('list')
    .description('list the packages that were added')
    .action(async (_, command) => {
      const found = await connect(command).packages.list();
      if (wantsJson(command)) return printJson(terminal, found);
      printList(terminal, found.items, COLUMNS, false);
      if (!found.enabled) terminal.err('This server installs no packages (TROUPE_PACKAGES).\n');
      if (found.installation?.error === null) terminal.err(`${found.installation.text}\n`);
    });
  examples(list, ['troupe packages list']);

  const add = group
    .command('add')
    .description('install packages, and add them to the workspace')
    .argument('[requirement...]', "packages as pip names them, such as 'seaborn>=0.13'")
    .option('-r, --requirements <file>', 'also add the packages in this file, one package on each line')
    .action(async (named: readonly string[], options: { requirements?: string }, command) => {
      const requirements = [...named, ...requirementsOf(options.requirements, cwd)];
      if (requirements.length === 0) throw new CommandFailure('Name at least one package.', EXIT.usage);
      const added = await addAll(connect(command), requirements, terminal);
      if (wantsJson(command)) return printJson(terminal, added);
      for (const { name, version } of added.installed) terminal.out(`${name} ${version}\n`);
      if (added.installed.length === 0) terminal.err('The server already has these packages.\n');
      if (added.openSessions.length > 0)
        terminal.err(
          `These sessions see the packages after they are closed and opened again: ${added.openSessions.join(' ')}\n`,
        );
    });
  examples(add, [
    'troupe packages add seaborn scikit-learn',
    "troupe packages add 'polars>=1,<2'",
    'troupe packages add -r requirements.txt',
  ]);

  const remove = group
    .command('remove')
    .description('remove packages from the workspace; running kernels keep the packages')
    .argument('<package...>', 'names of packages')
    .action(async (names: readonly string[], _, command) => {
      const client = connect(command);
      for (const name of names) await client.packages.remove(name);
      if (wantsJson(command)) printJson(terminal, { removed: names });
      else for (const name of names) terminal.err(`${name} is removed.\n`);
    });
  examples(remove, ['troupe packages remove seaborn']);
};

/** Adds packages and shows the progress. Returns when the packages are installed, however long that takes. */
async function addAll(
  client: Client,
  requirements: readonly string[],
  terminal: Terminal,
): Promise<AddedPackages> {
  let text = 'checking';
  using line = new LiveLine(terminal, () => text);
  const adding = client.packages.add(requirements);
  const tell = (now: string) => {
    if (now !== text) line.terminal.err(`${now}\n`);
    text = now;
  };
  let answer: AddedPackages | WorkspacePackageList | undefined;
  while (answer === undefined) {
    answer = await Promise.race([adding, sleep(POLL_MS, undefined)]);
    if (answer === undefined) tell((await client.packages.list()).installation?.text ?? text);
  }
  while (!('installed' in answer)) {
    const { installation } = await client.packages.list();
    if (installation?.error != null) throw new CommandFailure(installation.error);
    if (installation === null) answer = await client.packages.add(requirements);
    else {
      tell(installation.text);
      await sleep(POLL_MS);
    }
  }
  return answer;
}

/** Returns the requirements that a file lists. Options of pip, which begin with a hyphen, are refused. */
function requirementsOf(file: string | undefined, cwd: string): string[] {
  if (file === undefined) return [];
  const lines = readPlain(file, cwd).toString('utf8').split('\n');
  const found = lines.map((line) => line.replace(/(^|\s)#.*$/, '').trim()).filter((line) => line !== '');
  const option = found.find((line) => line.startsWith('-'));
  if (option !== undefined)
    throw new CommandFailure(`${file} has the option ${option}: only requirements can be added.`, EXIT.usage);
  return found;
}
