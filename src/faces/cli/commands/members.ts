import { Option } from 'commander';
import { ROLES, type Role } from '#src/base/caller/role.ts';
import type { Member } from '#src/contract/wire/identity.ts';
import { collect } from '../collect.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly ListColumn<Member>[] = [
  { title: 'user', of: ({ userId }) => userId },
  { title: 'role', of: ({ role }) => role },
  { title: 'name', of: ({ name }) => name },
  { title: 'since', of: ({ createdAt }) => createdAt },
];

const role = () => new Option('--role <role>', 'role of the member').choices([...ROLES]);

/** `troupe member`: members of the workspace. */
export const members: CommandGroup = (program, { terminal, connect, wantsJson }) => {
  const group = program
    .command('member')
    .description('members of the workspace; only owners may change them');
  const create = group
    .command('create')
    .alias('add')
    .description('add a member; a user that does not exist yet is created')
    .argument('<user>', 'user id of your choice, such as a mail address')
    .addOption(role().makeOptionMandatory())
    .option('--name <name>', 'name to display')
    .action(async (userId: string, options: { role: Role; name?: string }, command) => {
      const member = await connect(command).members.create({ userId, ...options });
      if (wantsJson(command)) printJson(terminal, member);
      else terminal.out(`${member.userId} is now ${withArticle(member.role)}.\n`);
    });
  examples(create, ["troupe member create ada@example.org --role editor --name 'Ada Lovelace'"]);
  const list = group
    .command('list')
    .description('list the members')
    .action(async (_, command) => {
      printList(terminal, await collect(connect(command).members.each()), COLUMNS, wantsJson(command));
    });
  examples(list, ['troupe member list']);
  const change = group
    .command('change')
    .description('change the role of a member')
    .argument('<user>', 'user id of the member')
    .addOption(role().makeOptionMandatory())
    .action(async (userId: string, body: { role: Role }, command) => {
      const member = await connect(command).members.update(userId, body);
      if (wantsJson(command)) printJson(terminal, member);
      else terminal.out(`${member.userId} is now ${withArticle(member.role)}.\n`);
    });
  examples(change, ['troupe member change ada@example.org --role owner']);
  const revoke = group
    .command('revoke')
    .alias('remove')
    .description('remove a member and revoke their tokens for this workspace')
    .argument('<user>', 'user id of the member')
    .action(async (userId: string, _, command) => {
      await connect(command).members.delete(userId);
      if (wantsJson(command)) printJson(terminal, { userId, removed: true });
      else terminal.out(`${userId} is no longer a member.\n`);
    });
  examples(revoke, ['troupe member revoke ada@example.org']);
};

function withArticle(name: Role): string {
  return name === 'viewer' ? `a ${name}` : `an ${name}`;
}
