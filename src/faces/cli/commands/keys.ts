import type { Key } from '#src/contract/wire/health.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly ListColumn<Key>[] = [
  { title: 'key', of: ({ id }) => id },
  { title: 'active', of: ({ active }) => (active ? 'yes' : 'no') },
  { title: 'seals', of: ({ sealed }) => String(sealed) },
  { title: 'needed', of: ({ active, sealed }) => (active || sealed > 0 ? 'yes' : 'by older backups only') },
];

/** `troupe keys`: the keyring. */
export const keys: CommandGroup = (program, { terminal, connect, wantsJson }) => {
  const group = program
    .command('keys')
    .description(
      'keys of the keyring that seals datasource connections; the keys themselves are never shown',
    );
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
    .description('create a key, which seals new connections; older keys still open older connections')
    .action(async (_, command) => {
      const { items } = await connect(command).keys.add();
      printList(terminal, [...items], COLUMNS, wantsJson(command));
    });
  examples(add, ['troupe keys add']);
  const rotate = group
    .command('rotate')
    .description(
      'create a key and seal everything with it; the old keys stay for older backups; the server keeps running',
    )
    .action(async (_, command) => {
      const { items } = await connect(command).keys.rotate();
      printList(terminal, [...items], COLUMNS, wantsJson(command));
    });
  examples(rotate, ['troupe keys rotate']);
  const deleting = group
    .command('delete')
    .description(
      'delete a key that seals nothing any more; connections in backups that need the key cannot be opened afterwards',
    )
    .argument('<key>', 'id of the key')
    .requiredOption('--yes', 'confirm the deletion')
    .action(async (id: string, _, command) => {
      await connect(command).keys.delete(id);
      if (wantsJson(command)) printJson(terminal, { id, deleted: true });
      else terminal.out(`The key ${id} is deleted.\n`);
    });
  examples(deleting, ['troupe keys delete key_0a… --yes']);
};
