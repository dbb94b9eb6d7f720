import type { OwnAccount } from '#src/contract/wire/identity.ts';
import type { CliContext, CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { factLines } from '../show/notebook.ts';
import { type Style, styleOf } from '../style.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly ListColumn<OwnAccount['workspaces'][number]>[] = [
  { title: 'workspace', of: ({ id }) => id },
  { title: 'name', of: ({ name }) => name },
  { title: 'role', of: ({ role }) => role },
];

/** `troupe whoami`: the user of the token, and the workspaces that the token can enter. */
export const whoami: CommandGroup = (program, context) => {
  const command = program
    .command('whoami')
    .description('show the user of the access token, its permitted use, and its workspaces')
    .action(async (_, cmd) => {
      const { terminal, connect, wantsJson } = context;
      const client = connect(cmd, { needsWorkspace: false });
      const account = await client.me({ limit: 100 });
      const workspaces = [...account.workspaces];
      for (let after = account.nextCursor; after !== null; ) {
        const page = await client.me({ limit: 100, after });
        workspaces.push(...page.workspaces);
        after = page.nextCursor;
      }
      if (wantsJson(cmd)) return printJson(terminal, { ...account, workspaces, nextCursor: null });
      terminal.out(accountText(account, styleOf(terminal.color)));
      show(context, workspaces);
    });
  examples(command, ['troupe whoami', 'troupe whoami --json | jq -r .user.id']);
};

function show({ terminal }: CliContext, workspaces: OwnAccount['workspaces']): void {
  terminal.out('\n');
  printList(terminal, workspaces, COLUMNS, false);
}

function accountText({ user, token }: OwnAccount, style: Style): string {
  return factLines(
    [
      ['user', user.id],
      ['token', `${token.name} (${token.id})`],
      ['scopes', token.scopes.join(' ')],
      ['valid for', token.workspaceId ?? 'every workspace of the user'],
      ['expires', token.expiresAt ?? 'never'],
    ],
    style,
  );
}
