import type { Command } from 'commander';
import type { Client } from '#src/client/client.ts';
import type { NotebookSecret } from '#src/wire/notebook.ts';
import type { CliContext } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { notebookOfFile } from '../run/push-notebook.ts';
import { type Column, printJson, printList } from '../terminal.ts';

const VARIABLES: readonly Column<readonly [string, string]>[] = [
  { title: 'name', of: ([name]) => name },
  { title: 'value', of: ([, value]) => value },
];

const SECRETS: readonly Column<NotebookSecret>[] = [
  { title: 'name', of: ({ name }) => name },
  { title: 'set by', of: ({ updatedBy }) => updatedBy },
  { title: 'set at', of: ({ updatedAt }) => updatedAt },
];

const NOTEBOOK = 'id of the notebook, or the file with its title';

/** `troupe notebooks variables`: environment variables, which everybody who can read the notebook can read. */
export function variables(parent: Command, { terminal, cwd, connect, wantsJson }: CliContext): void {
  const group = parent.command('variables').description("environment variables of a notebook's kernel");
  const list = group
    .command('list')
    .description('list the variables')
    .argument('<notebook>', NOTEBOOK)
    .action(async (name: string, _, command) => {
      const client = connect(command);
      const { variables: found } = await client.notebooks.get(await idOf(client, name, cwd));
      if (wantsJson(command)) printJson(terminal, found);
      else printList(terminal, Object.entries(found), VARIABLES, false);
    });
  examples(list, ['troupe notebooks variables list report.py']);

  const change = async (
    command: Command,
    name: string,
    changed: (before: Readonly<Record<string, string>>) => Record<string, string>,
  ) => {
    const client = connect(command);
    const before = await client.notebooks.get(await idOf(client, name, cwd));
    const { id, variables: after } = await client.notebooks.update(before.id, {
      expectedUpdatedAt: before.updatedAt,
      variables: changed(before.variables),
    });
    if (wantsJson(command)) printJson(terminal, after);
    else terminal.err(`${id}: ${Object.keys(after).join(', ') || 'no variables'}\n`);
  };
  const set = group
    .command('set')
    .description('set variables, which the next kernel has; refused while a session is open on the notebook')
    .argument('<notebook>', NOTEBOOK)
    .argument('<name=value...>', 'the variables; others stay as they are')
    .action((name: string, assignments: readonly string[], _, command) =>
      change(command, name, (before) => ({
        ...before,
        ...Object.fromEntries(assignments.map(assignmentOf)),
      })),
    );
  examples(set, ['troupe notebooks variables set report.py REGION=eu YEAR=2026']);

  const deleting = group
    .command('delete')
    .description('delete variables')
    .argument('<notebook>', NOTEBOOK)
    .argument('<name...>', 'names of the variables')
    .action((name: string, names: readonly string[], _, command) =>
      change(command, name, (before) => {
        const missing = names.filter((one) => !Object.hasOwn(before, one));
        if (missing.length > 0) throw new CommandFailure(`There is no variable ${missing.join(', ')}.`);
        return Object.fromEntries(Object.entries(before).filter(([one]) => !names.includes(one)));
      }),
    );
  examples(deleting, ['troupe notebooks variables delete report.py YEAR']);
}

/** `troupe notebooks metadata`: pairs by which notebooks are found. */
export function metadata(parent: Command, { terminal, cwd, connect, wantsJson }: CliContext): void {
  const group = parent.command('metadata').description('metadata of a notebook, by which lists are filtered');
  const list = group
    .command('list')
    .description('list the metadata')
    .argument('<notebook>', NOTEBOOK)
    .action(async (name: string, _, command) => {
      const client = connect(command);
      const { metadata: found = {} } = await client.notebooks.get(await idOf(client, name, cwd));
      if (wantsJson(command)) printJson(terminal, found);
      else printList(terminal, Object.entries(found), VARIABLES, false);
    });
  examples(list, ['troupe notebooks metadata list report.py']);

  const change = async (
    command: Command,
    name: string,
    changed: (before: Readonly<Record<string, string>>) => Record<string, string>,
  ) => {
    const client = connect(command);
    const before = await client.notebooks.get(await idOf(client, name, cwd));
    const { id, metadata: after = {} } = await client.notebooks.update(before.id, {
      expectedUpdatedAt: before.updatedAt,
      metadata: changed(before.metadata ?? {}),
    });
    if (wantsJson(command)) printJson(terminal, after);
    else terminal.err(`${id}: ${Object.keys(after).join(', ') || 'no metadata'}\n`);
  };
  const set = group
    .command('set')
    .description('set metadata; refused while a session is open on the notebook')
    .argument('<notebook>', NOTEBOOK)
    .argument('<key=value...>', 'the metadata; others stay as they are')
    .action((name: string, pairs: readonly string[], _, command) =>
      change(command, name, (before) => ({ ...before, ...Object.fromEntries(pairs.map(metadataPairOf)) })),
    );
  examples(set, ['troupe notebooks metadata set report.py project=sales ticket=7']);

  const deleting = group
    .command('delete')
    .description('delete metadata')
    .argument('<notebook>', NOTEBOOK)
    .argument('<key...>', 'keys of the metadata')
    .action((name: string, keys: readonly string[], _, command) =>
      change(command, name, (before) => {
        const missing = keys.filter((key) => !Object.hasOwn(before, key));
        if (missing.length > 0) throw new CommandFailure(`There is no metadata ${missing.join(', ')}.`);
        return Object.fromEntries(Object.entries(before).filter(([key]) => !keys.includes(key)));
      }),
    );
  examples(deleting, ['troupe notebooks metadata delete report.py ticket']);
}

/** Returns a pair of metadata. */
function metadataPairOf(text: string): [key: string, value: string] {
  const [, key, value] = /^([^=]+)=([\s\S]*)$/.exec(text) ?? [];
  if (key === undefined || value === undefined)
    throw new CommandFailure(`${JSON.stringify(text)} is not of the form key=value.`, EXIT.usage);
  return [key, value];
}

/** `troupe notebooks secrets`: environment variables whose values go in and never come out. */
export function secrets(parent: Command, { terminal, cwd, input, connect, wantsJson }: CliContext): void {
  const group = parent
    .command('secrets')
    .description("secret environment variables of a notebook's kernel, which are never shown");
  const list = group
    .command('list')
    .description('list the names of the secrets')
    .argument('<notebook>', NOTEBOOK)
    .action(async (name: string, _, command) => {
      const client = connect(command);
      const found = await client.notebooks.secrets(await idOf(client, name, cwd));
      printList(terminal, found, SECRETS, wantsJson(command));
    });
  examples(list, ['troupe notebooks secrets list report.py']);

  const set = group
    .command('set')
    .description('set a secret, read from standard input; the next kernel of the notebook has it')
    .argument('<notebook>', NOTEBOOK)
    .argument('<name>', 'name of the variable')
    .action(async (notebook: string, name: string, _, command) => {
      const client = connect(command);
      const id = await idOf(client, notebook, cwd);
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
    .argument('<notebook>', NOTEBOOK)
    .argument('<name>', 'name of the variable')
    .action(async (notebook: string, name: string, _, command) => {
      const client = connect(command);
      const id = await idOf(client, notebook, cwd);
      await client.notebooks.deleteSecret(id, name);
      if (wantsJson(command)) printJson(terminal, { id, name, deleted: true });
      else terminal.err(`The secret ${name} of ${id} is deleted.\n`);
    });
  examples(deleting, ['troupe notebooks secrets delete report.py WAREHOUSE_TOKEN']);
}

/** Returns the id of the notebook with this id, or with the title of this file. */
async function idOf(client: Client, name: string, cwd: string): Promise<string> {
  if (/^nb_\w+$/.test(name)) return name;
  return (await notebookOfFile(client, name, cwd, undefined)).id;
}

function assignmentOf(text: string): [string, string] {
  const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)=([\s\S]*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new CommandFailure(`${JSON.stringify(text)} is not of the form NAME=value.`, EXIT.usage);
  return [name, value];
}
