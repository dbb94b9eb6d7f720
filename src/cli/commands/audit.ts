import type { AuditEntry } from '#src/wire/audit.ts';
import { collect } from '../collect.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { type Column, printList } from '../terminal.ts';

interface Options {
  readonly user?: string;
  readonly action?: string;
  readonly target?: string;
  readonly since?: string;
  readonly newest?: boolean;
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: 'when', of: ({ createdAt }) => createdAt },
  { title: 'who', of: ({ userId }) => userId },
  { title: 'what', of: ({ action }) => action },
  { title: 'to', of: ({ target }) => target },
  { title: 'outcome', of: ({ outcome }) => outcome },
  { title: 'detail', of: detailOf },
];

export const audit: CommandGroup = (program, { terminal, connect, wantsJson }) => {
  const command = program
    .command('audit')
    .description('who did what in the workspace; for its owners')
    .option('--user <id>', 'only what this user did')
    .option('--action <prefix>', 'only actions that begin so, such as member or datasource.query')
    .option('--target <id>', 'only what was done to this id or slug')
    .option('--since <time>', 'only what was done after this time, such as 2026-01-31T12:00:00Z')
    .option('--newest', 'the newest first')
    .action(async ({ user, action, target, since, newest }: Options, cmd) => {
      const filters = {
        ...(user === undefined ? {} : { userId: user }),
        ...(action === undefined ? {} : { action }),
        ...(target === undefined ? {} : { target }),
        ...(since === undefined ? {} : { createdAfter: since }),
        ...(newest === true ? { order: 'desc' as const } : {}),
      };
      const entries = await collect(connect(cmd).eachAudited({ limit: 100, ...filters }));
      printList(terminal, entries, COLUMNS, wantsJson(cmd));
    });
  examples(command, [
    'troupe audit',
    'troupe audit --action token',
    'troupe audit --user ada --json | jq -r ".[].target"',
  ]);
};

function detailOf({ detail, query }: AuditEntry): string | null {
  if (query === undefined) return detail;
  const { statements, rows, durationMs, by, sessionId } = query;
  const statement = statements === 1 ? '1 statement' : `${statements} statements`;
  return `${statement}, ${rows} rows, ${durationMs} ms, by ${by === 'agent' ? 'an agent' : (sessionId ?? by)}`;
}
