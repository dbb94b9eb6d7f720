import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { FileEntry } from '#src/contract/wire/files.ts';
import { collect } from '../collect.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { plainPath } from '../plain-path.ts';
import { type FetchedFile, fetchFile } from '../run/file-transfer.ts';
import { fetchAll, filesNamed, sendAs, sendNamed } from '../run/named-files.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly ListColumn<FileEntry>[] = [
  { title: 'path', of: ({ path }) => path },
  { title: 'size', of: ({ bytes }) => (bytes === null ? null : String(bytes)) },
  { title: 'updated', of: ({ updatedAt }) => updatedAt },
];

/** `troupe files`: the files of the workspace. */
export const fileCommands: CommandGroup = (program, { terminal, cwd, connect, wantsJson }) => {
  const group = program
    .command('files')
    .description('files of the workspace: the working directory of its notebooks');
  const list = group
    .command('list')
    .description('list a folder')
    .argument('[prefix]', 'beginning of the paths; a folder ends in a slash')
    .option('-r, --recursive', 'list all files below the folder, without the folders')
    .action(async (prefix: string | undefined, options: { recursive?: boolean }, command) => {
      const client = connect(command);
      const entries = options.recursive
        ? client.files.walk(prefix)
        : client.files.each({ prefix, limit: 1000 });
      printList(terminal, await collect(entries), COLUMNS, wantsJson(command));
    });
  examples(list, ['troupe files list', 'troupe files list data/', 'troupe files list -r']);

  const get = group
    .command('get')
    .description('copy files here: a file, everything in a folder, or all files that match a pattern')
    .argument('<path...>', "paths in the workspace, such as out.csv, plots/ or 'plots/*.png'")
    .option(
      '-o, --output <path>',
      'path for a single file (- for standard output), or a folder, which ends in a slash',
    )
    .action(async (paths: readonly string[], { output }: { output?: string }, command) => {
      const client = connect(command);
      const entries: FileEntry[] = [];
      for (const path of paths) {
        const found = await filesNamed(client, path);
        if (found.length === 0) throw new CommandFailure(`The workspace has no file ${path}.`);
        entries.push(...found);
      }
      const [only] = entries;
      const isFolder = output !== undefined && (output.endsWith('/') || isDirectory(resolve(cwd, output)));
      if (output !== undefined && !isFolder && (only === undefined || entries.length > 1))
        throw new CommandFailure(`There are ${entries.length} files, so -o must be a folder.`, EXIT.usage);
      if (output === '-' && only !== undefined) {
        const { body } = await client.files.open(only.path);
        if (body !== null) await terminal.content(body);
        return;
      }
      const fetched: FetchedFile[] =
        output !== undefined && !isFolder && only !== undefined
          ? [await fetchFile(client, only, plainPath(output, cwd))]
          : await fetchAll(client, entries, plainPath(output ?? '.', cwd));
      if (wantsJson(command)) printJson(terminal, fetched);
      else for (const { file, bytes } of fetched) terminal.err(`${file}: ${bytes} bytes\n`);
    });
  examples(get, [
    'troupe files get out.csv',
    'troupe files get plots/',
    'troupe files get out.csv -o - | head',
  ]);

  const put = group
    .command('put')
    .description('store files and folders under their paths from this directory')
    .argument(
      '<path...>',
      'files and folders below this directory; for others add the path in the workspace, such as ../x.csv=x.csv',
    )
    .option('--as <path>', 'place in the workspace of a single file or folder')
    .action(async (paths: readonly string[], options: { as?: string }, command) => {
      const client = connect(command);
      if (options.as !== undefined && paths.length > 1)
        throw new CommandFailure('--as is for a single file or folder.', EXIT.usage);
      const stored = [];
      for (const path of paths)
        stored.push(
          ...(options.as === undefined
            ? await sendNamed(client, cwd, path)
            : await sendAs(client, cwd, path, options.as)),
        );
      if (wantsJson(command)) printJson(terminal, stored);
      else for (const { path, bytes } of stored) terminal.err(`${path}: ${bytes} bytes\n`);
    });
  examples(put, ['troupe files put data/ helpers.py', 'troupe files put /tmp/sales.csv --as data/sales.csv']);

  const deleting = group
    .command('delete')
    .description('delete files; a folder, which ends in a slash, only with --recursive')
    .argument('<path...>', 'paths in the workspace')
    .option('-r, --recursive', 'delete folders with everything in them')
    .action(async (paths: readonly string[], options: { recursive?: boolean }, command) => {
      const client = connect(command);
      const deleted: string[] = [];
      const remove = async (path: string): Promise<void> => {
        if (path.endsWith('/') && options.recursive === true)
          for (const entry of await collect(client.files.each({ prefix: path, limit: 1000 })))
            await remove(entry.path);
        await client.files.delete(path);
        deleted.push(path);
      };
      for (const path of paths) await remove(path);
      if (wantsJson(command)) printJson(terminal, deleted);
      else for (const path of deleted) terminal.out(`${path} is deleted.\n`);
    });
  examples(deleting, ['troupe files delete out.csv', 'troupe files delete -r plots/']);
};

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
