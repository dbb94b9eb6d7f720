import { setTimeout as pause } from 'node:timers/promises';
import { ApiError, ConnectionError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { AuditEntry } from '#src/contract/wire/audit.ts';
import type { AuditFilters } from '#src/contract/wire/lists.ts';
import { collect } from '../collect.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { safeLine } from '../safe-text.ts';
import { type ListColumn, printJsonLine, printList } from '../terminal.ts';

interface Options {
  readonly user?: string;
  readonly action?: string;
  readonly target?: string;
  readonly since?: string;
  readonly newest?: boolean;
  readonly follow?: boolean;
}

const COLUMNS: readonly ListColumn<AuditEntry>[] = [
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
    .description('list the actions of users in the workspace; for its owners')
    .option('--user <id>', 'only actions of this user')
    .option(
      '--action <prefix>',
      'only actions whose name begins with this text, such as member or datasource.query',
    )
    .option('--target <id>', 'only actions on this id or slug')
    .option('--since <time>', 'only actions after this time, such as 2026-01-31T12:00:00Z')
    .option('--newest', 'the newest first')
    .option(
      '--follow',
      'print new entries as they are added, after --since if it is given; with --json one entry on each line',
    )
    .action(async ({ user, action, target, since, newest, follow }: Options, cmd) => {
      if (follow === true && newest === true)
        throw new CommandFailure('Use --follow or --newest, not both.', EXIT.usage);
      const filters = {
        ...(user === undefined ? {} : { userId: user }),
        ...(action === undefined ? {} : { action }),
        ...(target === undefined ? {} : { target }),
        ...(since === undefined ? {} : { createdAfter: since }),
        ...(newest === true ? { order: 'desc' as const } : {}),
      };
      if (follow === true) {
        for await (const entry of addedEntries(connect(cmd), filters))
          if (wantsJson(cmd)) printJsonLine(terminal, entry);
          else terminal.out(`${safeLine(COLUMNS.map(({ of }) => of(entry) ?? '-').join('  '))}\n`);
        return;
      }
      const entries = await collect(connect(cmd).eachAudited({ limit: 100, ...filters }));
      printList(terminal, entries, COLUMNS, wantsJson(cmd));
    });
  examples(command, [
    'troupe audit',
    'troupe audit --action token',
    'troupe audit --follow --json >> audit.jsonl',
    'troupe audit --user ada --json | jq -r ".[].target"',
  ]);
};

const ASK_EVERY_MS = 1_000;

/** Yields new entries for ever, and first the entries since `createdAfter` if it is given. Asks again while the server restarts. */
async function* addedEntries(
  client: Pick<Client, 'audit'>,
  filters: AuditFilters,
): AsyncGenerator<AuditEntry, never> {
  const isNew = filters.createdAfter === undefined;
  const newest = isNew ? (await client.audit({ order: 'desc', limit: 1 })).items[0] : undefined;
  for (let after = newest?.id; ; ) {
    const page = await client.audit({ ...filters, after, limit: 100 }).catch((error: unknown) => {
      if (error instanceof ConnectionError || (error instanceof ApiError && error.status === 503))
        return undefined;
      throw error;
    });
    yield* page?.items ?? [];
    // A cursor is the id of an entry. After a long search, a page may be empty and still have a cursor.
    after = page?.nextCursor ?? page?.items.at(-1)?.id ?? after;
    if (page?.nextCursor == null) await pause(ASK_EVERY_MS);
  }
}

function detailOf({ detail, query }: AuditEntry): string | null {
  if (query === undefined) return detail;
  const { statements, rows, durationMs, by, sessionId } = query;
  const statement = statements === 1 ? '1 statement' : `${statements} statements`;
  return `${statement}, ${rows} rows, ${durationMs} ms, by ${by === 'agent' ? 'an agent' : (sessionId ?? by)}`;
}
