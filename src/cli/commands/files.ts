import { resolve } from 'node:path';
import type { FileEntry } from '#src/wire/files.ts';
import { collect } from '../collect.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { fetchFile, isFolderPath, sendPath } from '../run/file-transfer.ts';
import { type Column, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly Column<FileEntry>[] = [
  { title: 'path', of: ({ path }) => path },
  { title: 'size', of: ({ size }) => (size === null ? null : String(size)) },
  { title: 'updated', of: ({ updatedAt }) => updatedAt },
];

/** `troupe files`: the files of the workspace. */
export const files: CommandGroup = (program, { terminal, cwd, connect, wantsJson }) => {
  const group = program
    .command('files')
    .description('files of the workspace: what its notebooks find in their working directory');
  const list = group
    .command('list')
    .description('list a folder')
    .argument('[prefix]', 'what the paths begin with; a folder ends in a slash')
    .option('-r, --recursive', 'list what is in folders as well, without the folders')
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
    .description('copy files here; a folder, which ends in a slash, with everything in it')
    .argument('<path...>', 'paths in the workspace')
    .option('-o, --output <path>', 'where to write a single file; - writes it to standard output')
    .action(async (paths: readonly string[], { output }: { output?: string }, command) => {
      const client = connect(command);
      const [only] = paths;
      if (output === '-' && paths.length === 1 && only !== undefined) {
        terminal.out(Buffer.from((await client.files.get(only)).bytes).toString('utf8'));
        return;
      }
      const fetched = [];
      for (const path of paths) {
        const target = output !== undefined && paths.length === 1 && !isFolderPath(path) ? output : path;
        fetched.push(...(await fetchFile(client, path, resolve(cwd, target))));
      }
      if (wantsJson(command)) printJson(terminal, fetched);
      else for (const { path, bytes } of fetched) terminal.err(`${path}: ${bytes} bytes\n`);
    });
  examples(get, [
    'troupe files get out.csv',
    'troupe files get plots/',
    'troupe files get out.csv -o - | head',
  ]);

  const put = group
    .command('put')
    .description('store files and folders under the paths that they have here')
    .argument('<path...>', 'files and folders below this directory')
    .option('--as <path>', 'path in the workspace of a single file or folder')
    .action(async (paths: readonly string[], options: { as?: string }, command) => {
      const client = connect(command);
      const stored = [];
      for (const path of paths)
        stored.push(...(await sendPath(client, cwd, path, paths.length === 1 ? options.as : undefined)));
      if (wantsJson(command)) printJson(terminal, stored);
      else for (const { path, size } of stored) terminal.err(`${path}: ${size} bytes\n`);
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
        if (isFolderPath(path) && options.recursive === true)
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
