import { InvalidArgumentError, Option } from 'commander';
import type { AccessToken, Scope } from '#src/contract/wire/identity.ts';
import { collect } from '../collect.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly ListColumn<AccessToken>[] = [
  { title: 'id', of: ({ id }) => id },
  { title: 'name', of: ({ name }) => name },
  { title: 'user', of: ({ userId }) => userId },
  { title: 'scopes', of: ({ scopes }) => scopes.join(',') },
  { title: 'created', of: ({ createdAt }) => createdAt },
  { title: 'expires', of: ({ expiresAt }) => expiresAt },
];

const SCOPES: readonly Scope[] = [
  'workspaceRuntime:connect',
  'datasource:read',
  'workspace:manage',
  'server:observe',
  'server:manage',
];
const DEFAULT_SCOPES: readonly Scope[] = ['workspaceRuntime:connect', 'datasource:read'];

interface CreateOptions {
  readonly scope?: readonly Scope[];
  readonly user?: string;
  readonly expires?: string;
}

/** `troupe token`: access tokens. */
export const tokens: CommandGroup = (program, { terminal, connect, wantsJson }) => {
  const scopes = new Option(
    '--scope <scope...>',
    `scopes of the token (default: ${DEFAULT_SCOPES.join(' ')})`,
  );
  scopes.choices(SCOPES);
  const group = program.command('token').description('access tokens');
  const create = group
    .command('create')
    .description('create an access token and print it; it is not shown again')
    .argument('<name>', 'a name that says the purpose of the token')
    .addOption(scopes)
    .option('--user <user>', 'member to whom the token belongs (default: yourself)')
    .option(
      '--expires <when>',
      'when it expires: a time such as 2031-01-31T12:00:00Z, or from now: 90d, 12h, 30m',
      parseExpiry,
    )
    .action(async (name: string, { scope = DEFAULT_SCOPES, user, expires }: CreateOptions, command) => {
      const created = await connect(command).accessTokens.create({
        name,
        scopes: scope,
        ...(user === undefined ? {} : { userId: user }),
        ...(expires === undefined ? {} : { expiresAt: expires }),
      });
      if (wantsJson(command)) return printJson(terminal, created);
      terminal.out(`${created.token}\n`);
      terminal.err(`${created.id} belongs to ${created.userId}. The token is not shown again.\n`);
    });
  examples(create, [
    'troupe token create ci --expires 90d > ci-token',
    'troupe token create reports --user ada@example.org --scope datasource:read',
  ]);
  const list = group
    .command('list')
    .description('list access tokens; owners see the tokens of all members')
    .action(async (_, command) => {
      printList(terminal, await collect(connect(command).accessTokens.each()), COLUMNS, wantsJson(command));
    });
  examples(list, ['troupe token list']);
  const revoke = group
    .command('revoke')
    .description('revoke an access token; it stops working at once')
    .argument('<id>', 'id of the token')
    .action(async (id: string, _, command) => {
      await connect(command).accessTokens.delete(id);
      if (wantsJson(command)) printJson(terminal, { id, revoked: true });
      else terminal.out(`${id} is revoked.\n`);
    });
  examples(revoke, ['troupe token revoke tok_01…']);
};

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns the time in RFC 3339: `text` itself, or the time in that many days or hours from now. */
export function parseExpiry(text: string): string {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const ms = UNIT_MS[unit];
  if (count !== undefined && ms !== undefined) return new Date(Date.now() + Number(count) * ms).toISOString();
  if (/^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text))) return new Date(text).toISOString();
  throw new InvalidArgumentError('It must be a time such as 2031-01-31T12:00:00Z, or 90d, 12h, 30m.');
}
