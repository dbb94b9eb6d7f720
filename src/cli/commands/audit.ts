import type { AuditEntry } from '#src/wire/audit.ts';
import { collect } from '../collect.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { type Column, printList } from '../terminal.ts';

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: 'when', of: ({ at }) => at },
  { title: 'who', of: ({ userId }) => userId },
  { title: 'what', of: ({ action }) => action },
  { title: 'to', of: ({ target }) => target },
  { title: 'outcome', of: ({ outcome }) => outcome },
  { title: 'detail', of: detailOf },
];

export const audit: CommandGroup = (program, { terminal, connect, wantsJson }) => {
  const command = program
    .command('audit')
    .description('who did what in the workspace, oldest first; for its owners')
    .option('--user <id>', 'only what this user did')
    .option('--action <prefix>', 'only actions that begin so, such as member or datasource.query')
    .action(async ({ user, action = '' }: { user?: string; action?: string }, cmd) => {
      const all = await collect(connect(cmd).eachAudited({ limit: 100 }));
      const chosen = all.filter(
        (entry) => (user === undefined || entry.userId === user) && entry.action.startsWith(action),
      );
      printList(terminal, chosen, COLUMNS, wantsJson(cmd));
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
