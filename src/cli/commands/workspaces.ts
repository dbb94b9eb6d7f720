import type { Workspace } from '#src/wire/identity.ts';
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
};
