import type { Workspace } from '#src/wire/identity.ts';
import type { WorkspaceUsage } from '#src/wire/usage.ts';
import { collect } from '../collect.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { type Column, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly Column<Workspace>[] = [
  { title: 'id', of: ({ id }) => id },
  { title: 'name', of: ({ name }) => name },
  { title: 'created', of: ({ createdAt }) => createdAt },
];

/** `troupe workspace`: workspaces of the user. */
export const workspaces: CommandGroup = (program, { terminal, connect, wantsJson }) => {
  const group = program.command('workspace').description('workspaces of which you are a member');
  const create = group
    .command('create')
    .description('create a workspace, with you as its owner')
    .argument('<name>', 'name of the workspace')
    .action(async (name: string, _, command) => {
      const workspace = await connect(command).workspaces.create({ name });
      if (wantsJson(command)) printJson(terminal, workspace);
      else terminal.out(`${workspace.id}\n`);
    });
  examples(create, ['export SERVICE_WORKSPACE_ID=$(troupe workspace create Research)']);
  const deleting = group
    .command('delete')
    .description('delete a workspace with everything in it but its files, for ever')
    .argument('<workspace>', 'id of the workspace')
    .requiredOption('--yes', 'confirm that it is to be deleted')
    .action(async (id: string, _, command) => {
      await connect(command).workspaces.delete(id);
      if (wantsJson(command)) printJson(terminal, { id, deleted: true });
      else terminal.out(`The workspace ${id} is deleted.\n`);
    });
  examples(deleting, ['troupe workspace delete ws_01… --yes']);
  const list = group
    .command('list')
    .description('list your workspaces')
    .action(async (_, command) => {
      printList(terminal, await collect(connect(command).workspaces.each()), COLUMNS, wantsJson(command));
    });
  examples(list, ['troupe workspace list']);
  const usage = group
    .command('usage')
    .description('show how much the workspace takes on the disk of the server')
    .action(async (_, command) => {
      const found = await connect(command).usage();
      if (wantsJson(command)) printJson(terminal, found);
      else printList(terminal, rowsOf(found), USAGE_COLUMNS, false);
    });
  examples(usage, ['troupe workspace usage', 'troupe workspace usage --workspace ws_01… --json']);
};

interface UsageRow {
  readonly of: string;
  readonly bytes: number;
  readonly entries?: number;
  readonly quota?: string;
}
const USAGE_COLUMNS: readonly Column<UsageRow>[] = [
  { title: 'of', of: ({ of }) => of },
  { title: 'size', of: ({ bytes }) => sizeText(bytes) },
  { title: 'count', of: ({ entries }) => entries?.toString() ?? null },
  { title: 'quota', of: ({ quota }) => quota ?? null },
];

function rowsOf({ files, stored }: WorkspaceUsage): UsageRow[] {
  const { maxBytes, maxEntries } = files;
  const quota = [
    ...(maxBytes === null ? [] : [sizeText(maxBytes)]),
    ...(maxEntries === null ? [] : [`${maxEntries} entries`]),
  ].join(', ');
  return [
    {
      of: files.complete ? 'files' : 'files (at least)',
      bytes: files.bytes,
      entries: files.entries,
      quota: quota || 'none',
    },
    { of: stored.complete ? 'store' : 'store (at least)', bytes: stored.bytes, entries: stored.records },
    { of: '  notebooks', bytes: stored.notebooks },
    { of: '  runs', bytes: stored.runs },
    { of: '  assets', bytes: stored.assets },
    { of: '  conversations', bytes: stored.conversations },
    { of: '  audit', bytes: stored.audit },
    { of: '  other', bytes: stored.other },
  ];
}

/** Returns a size for people, in binary units. */
function sizeText(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1);
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}
