import type { Key } from '#src/client/datasources.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { type Column, printList } from '../terminal.ts';

const COLUMNS: readonly Column<Key>[] = [
  { title: 'key', of: ({ id }) => id },
  { title: 'active', of: ({ active }) => (active ? 'yes' : 'no') },
  { title: 'seals', of: ({ sealed }) => String(sealed) },
];

export const keys: CommandGroup = (program, { terminal, connect, wantsJson }) => {
  const group = program.command('keys').description('the keyring that seals connections, never its values');
  const list = group
    .command('list')
    .description('list the keys and how many connections each seals')
    .action(async (_, command) => {
      const { items } = await connect(command).keys.list();
      printList(terminal, [...items], COLUMNS, wantsJson(command));
    });
  examples(list, ['troupe keys list']);
  const add = group
    .command('add')
    .description('make a new key, which seals from now on; the others stay for what they have sealed')
    .action(async (_, command) => {
      const { items } = await connect(command).keys.add();
      printList(terminal, [...items], COLUMNS, wantsJson(command));
    });
  examples(add, ['troupe keys add']);
  const rotate = group
    .command('rotate')
    .description('make a new key, seal everything with it, and drop the old ones; the server goes on')
    .action(async (_, command) => {
      const { items } = await connect(command).keys.rotate();
      printList(terminal, [...items], COLUMNS, wantsJson(command));
    });
  examples(rotate, ['troupe keys rotate']);
};
