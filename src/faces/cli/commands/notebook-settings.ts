import type { Command } from 'commander';
import type { NotebookSecret } from '#src/contract/wire/notebook.ts';
import type { CliContext } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { checkDatasources } from '../run/notebook-datasources.ts';
import { idOfNotebook, syncContextOf } from '../run/notebook-sync.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';

const NAMED_TEXTS: readonly ListColumn<readonly [string, string]>[] = [
  { title: 'name', of: ([name]) => name },
  { title: 'value', of: ([, value]) => value },
];

const SECRETS: readonly ListColumn<NotebookSecret>[] = [
  { title: 'name', of: ({ name }) => name },
  { title: 'set by', of: ({ updatedBy }) => updatedBy },
  { title: 'set at', of: ({ updatedAt }) => updatedAt },
];

const SLUGS: readonly ListColumn<string>[] = [{ title: 'slug', of: (slug) => slug }];

export const NOTEBOOK_ARGUMENT = 'id of the notebook, or the file that belongs to it';

/** Named texts of a notebook, and the command line's words for them. */
interface NamedTexts {
  /** The member of the notebook. */
  readonly member: 'variables' | 'metadata';
  readonly description: string;
  /** The form of one text, such as `key=value`. */
  readonly form: string;
  readonly pairOf: (text: string) => readonly [name: string, value: string];
  readonly setting: string;
  /** The arguments of the examples. */
  readonly examples: { readonly set: string; readonly deleted: string };
}

/** `troupe notebooks variables`: environment variables, which everybody who can read the notebook can read. */
export const variables = (parent: Command, context: CliContext): void =>
  addNamedTexts(parent, context, {
    member: 'variables',
    description: "environment variables of a notebook's kernel",
    form: 'name=value',
    pairOf: assignmentOf,
    setting: 'set variables for the next kernel; refused while a session is open on the notebook',
    examples: { set: 'REGION=eu YEAR=2026', deleted: 'YEAR' },
  });

/** `troupe notebooks metadata`: texts by which lists can be filtered. */
export const metadata = (parent: Command, context: CliContext): void =>
  addNamedTexts(parent, context, {
    member: 'metadata',
    description: 'metadata of a notebook, by which lists are filtered',
    form: 'key=value',
    pairOf: metadataPairOf,
    setting: 'set metadata; refused while a session is open on the notebook',
    examples: { set: 'project=sales ticket=7', deleted: 'ticket' },
  });

/** Adds the commands that list, set and delete named texts of a notebook. */
function addNamedTexts(
  parent: Command,
  context: CliContext,
  { member, description, form, pairOf, setting, examples: rest }: NamedTexts,
): void {
  const { terminal, connect, wantsJson } = context;
  const idOf = (name: string, command: Command) => idOfNotebook(syncContextOf(context, command), name);
  const group = parent.command(member).description(description);
  const list = group
    .command('list')
    .description(`list the ${member}`)
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .action(async (name: string, _, command) => {
      const client = connect(command);
      const { [member]: found = {} } = await client.notebooks.get(await idOf(name, command));
      if (wantsJson(command)) printJson(terminal, found);
      else printList(terminal, Object.entries(found), NAMED_TEXTS, false);
    });
  examples(list, [`troupe notebooks ${member} list report.py`]);

  const change = async (
    command: Command,
    name: string,
    changed: (before: Readonly<Record<string, string>>) => Record<string, string>,
  ) => {
    const client = connect(command);
    const before = await client.notebooks.get(await idOf(name, command));
    const { id, [member]: after = {} } = await client.notebooks.update(before.id, {
      expectedUpdatedAt: before.updatedAt,
      [member]: changed(before[member] ?? {}),
    });
    if (wantsJson(command)) printJson(terminal, after);
    else terminal.err(`${id}: ${Object.keys(after).join(', ') || `no ${member}`}\n`);
  };
  const set = group
    .command('set')
    .description(setting)
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .argument(`<${form}...>`, `the ${member}; others stay as they are`)
    .action((name: string, texts: readonly string[], _, command) =>
      change(command, name, (before) => ({ ...before, ...Object.fromEntries(texts.map(pairOf)) })),
    );
  examples(set, [`troupe notebooks ${member} set report.py ${rest.set}`]);

  const deleting = group
    .command('delete')
    .description(`delete ${member}`)
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .argument(`<${form.split('=')[0]}...>`, `names of the ${member}`)
    .action((name: string, names: readonly string[], _, command) =>
      change(command, name, (before) => {
        const missing = names.filter((one) => !Object.hasOwn(before, one));
        if (missing.length > 0)
          throw new CommandFailure(`The notebook has no ${member} ${missing.join(', ')}.`);
        return Object.fromEntries(Object.entries(before).filter(([one]) => !names.includes(one)));
      }),
    );
  examples(deleting, [`troupe notebooks ${member} delete report.py ${rest.deleted}`]);
}

/** Returns the key and the value of a metadata text. */
function metadataPairOf(text: string): [key: string, value: string] {
  const [, key, value] = /^([^=]+)=([\s\S]*)$/.exec(text) ?? [];
  if (key === undefined || value === undefined)
    throw new CommandFailure(`${JSON.stringify(text)} is not of the form key=value.`, EXIT.usage);
  return [key, value];
}

/** `troupe notebooks datasources`: the databases that a notebook may use. */
export function notebookDatasources(parent: Command, context: CliContext): void {
  const { terminal, connect, wantsJson } = context;
  const idOf = (name: string, command: Command) => idOfNotebook(syncContextOf(context, command), name);
  const group = parent
    .command('datasources')
    .description('datasources that a notebook may use, by their slugs');
  const list = group
    .command('list')
    .description('list the datasources of the notebook')
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .action(async (name: string, _, command) => {
      const { datasourceSlugs } = await connect(command).notebooks.get(await idOf(name, command));
      printList(terminal, datasourceSlugs, SLUGS, wantsJson(command));
    });
  examples(list, ['troupe notebooks datasources list report.py']);

  const change = async (
    command: Command,
    name: string,
    changed: (before: readonly string[]) => readonly string[],
  ) => {
    const client = connect(command);
    const before = await client.notebooks.get(await idOf(name, command));
    const { id, datasourceSlugs } = await client.notebooks.update(before.id, {
      expectedUpdatedAt: before.updatedAt,
      datasourceSlugs: changed(before.datasourceSlugs),
    });
    if (wantsJson(command)) printJson(terminal, datasourceSlugs);
    else terminal.err(`${id}: ${datasourceSlugs.join(', ') || 'no datasources'}\n`);
  };
  const add = group
    .command('add')
    .description('let the notebook use datasources; refused while a session is open on it')
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .argument('<slug...>', 'slugs of datasources that you may read')
    .action(async (name: string, slugs: readonly string[], _, command) => {
      await checkDatasources(connect(command), slugs);
      await change(command, name, (before) => [...new Set([...before, ...slugs])]);
    });
  examples(add, ['troupe notebooks datasources add report.py sales']);

  const remove = group
    .command('remove')
    .description('take datasources from the notebook; the datasources themselves stay')
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .argument('<slug...>', 'slugs of datasources')
    .action((name: string, slugs: readonly string[], _, command) =>
      change(command, name, (before) => {
        const missing = slugs.filter((slug) => !before.includes(slug));
        if (missing.length > 0)
          throw new CommandFailure(`The notebook has no datasources ${missing.join(', ')}.`);
        return before.filter((slug) => !slugs.includes(slug));
      }),
    );
  examples(remove, ['troupe notebooks datasources remove report.py sales']);
}

/** `troupe notebooks secrets`: environment variables whose values are never shown. */
export function secrets(parent: Command, context: CliContext): void {
  const { terminal, input, connect, wantsJson } = context;
  const idOf = (name: string, command: Command) => idOfNotebook(syncContextOf(context, command), name);
  const group = parent
    .command('secrets')
    .description("secret environment variables of a notebook's kernel, which are never shown");
  const list = group
    .command('list')
    .description('list the names of the secrets')
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .action(async (name: string, _, command) => {
      const client = connect(command);
      const found = await client.notebooks.secrets(await idOf(name, command));
      printList(terminal, found, SECRETS, wantsJson(command));
    });
  examples(list, ['troupe notebooks secrets list report.py']);

  const set = group
    .command('set')
    .description('set a secret from standard input, for the next kernel of the notebook')
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .argument('<name>', 'name of the variable')
    .action(async (notebook: string, name: string, _, command) => {
      const client = connect(command);
      const id = await idOf(notebook, command);
      if (input.isTerminal) terminal.err('Type the secret, Enter, and Ctrl-D.\n');
      // The secret is not an argument, because other users can read the arguments of a process.
      const value = (await input.read()).replace(/\r?\n$/, '');
      if (value === '') throw new CommandFailure('Provide the secret on standard input.', EXIT.usage);
      const stored = await client.notebooks.setSecret(id, name, value);
      if (wantsJson(command)) printJson(terminal, stored);
      else terminal.err(`The secret ${name} of ${id} is stored.\n`);
    });
  examples(set, ['pass show warehouse | troupe notebooks secrets set report.py WAREHOUSE_TOKEN']);

  const deleting = group
    .command('delete')
    .description('delete a secret')
    .argument('<notebook>', NOTEBOOK_ARGUMENT)
    .argument('<name>', 'name of the variable')
    .action(async (notebook: string, name: string, _, command) => {
      const client = connect(command);
      const id = await idOf(notebook, command);
      await client.notebooks.deleteSecret(id, name);
      if (wantsJson(command)) printJson(terminal, { id, name, deleted: true });
      else terminal.err(`The secret ${name} of ${id} is deleted.\n`);
    });
  examples(deleting, ['troupe notebooks secrets delete report.py WAREHOUSE_TOKEN']);
}

function assignmentOf(text: string): [string, string] {
  const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)=([\s\S]*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new CommandFailure(`${JSON.stringify(text)} is not of the form NAME=value.`, EXIT.usage);
  return [name, value];
}
