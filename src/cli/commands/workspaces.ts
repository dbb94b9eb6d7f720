import type { Workspace } from '#src/client/identity.ts';
import { collect } from '../collect.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { type Column, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly Column<Workspace>[] = [
  { title: 'id', of: ({ id }) => id },
  { title: 'name', of: ({ name }) => name },
  { title: 'created', of: ({ createdAt }) => createdAt },
];

export const workspaces: CommandGroup = (program, { terminal, connect, wantsJson }) => {
  const group = program.command('workspace').description('workspaces');
  const create = group
    .command('create')
    .description('create a workspace that you own')
    .argument('<name>')
    .action(async (name: string, _, command) => {
      const workspace = await connect(command).workspaces.create({ name });
      if (wantsJson(command)) printJson(terminal, workspace);
      else terminal.out(`${workspace.id}\n`);
    });
  examples(create, ['export SERVICE_WORKSPACE_ID=$(troupe workspace create Research)']);
  const list = group
    .command('list')
    .description('list the workspaces that you can enter')
    .action(async (_, command) => {
      printList(terminal, await collect(connect(command).workspaces.each()), COLUMNS, wantsJson(command));
    });
  examples(list, ['troupe workspace list']);
};
