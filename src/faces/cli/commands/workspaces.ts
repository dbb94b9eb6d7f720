import type { Client } from '#src/contract/client/client.ts';
import type { NewWorkspaceLimits, Workspace, WorkspaceLimits } from '#src/contract/wire/identity.ts';
import type { ModelUsage, WorkspaceUsage } from '#src/contract/wire/usage.ts';
import { collect } from '../collect.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { sizeText } from '../show/size-text.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly ListColumn<Workspace>[] = [
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
    .description('delete a workspace for ever, with everything except its files')
    .argument('<workspace>', 'id of the workspace')
    .requiredOption('--yes', 'confirm the deletion')
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
  const limiting = group
    .command('limits')
    .description('show the limits of a workspace, or set them with a token that has the scope server:manage')
    .argument('<workspace>', 'id of the workspace')
    .option('--set <name=value...>', 'set a limit; 0 means no limit, `default` the limit in the settings')
    .action(async (id: string, { set = [] }: { set?: string[] }, command) => {
      const { workspaces: api } = connect(command);
      const now = await api.limits(id);
      const limits = set.length === 0 ? now : await api.setLimits(id, changedLimits(now, set));
      if (wantsJson(command)) printJson(terminal, limits);
      else printList(terminal, limitRows(limits), LIMIT_COLUMNS, false);
    });
  examples(limiting, [
    'troupe workspace limits ws_01…',
    'troupe workspace limits ws_01… --set sessions=20 sessionsPerUser=4 runs=default',
  ]);
  const usage = group
    .command('usage')
    .description('show the disk space of the workspace on the server, and the tokens of models by day')
    .option(
      '--from <day>',
      'first UTC day of the tokens, such as 2026-06-01 (default: 30 days before the last)',
    )
    .option('--to <day>', 'last UTC day of the tokens (default: today)')
    .action(async (days: { from?: string; to?: string }, command) => {
      const found = await wholeUsage(connect(command), days);
      if (wantsJson(command)) return printJson(terminal, found);
      printList(terminal, rowsOf(found), USAGE_COLUMNS, false);
      if (found.models.items.length === 0) return;
      terminal.out('\n');
      printList(terminal, found.models.items, MODEL_COLUMNS, false);
    });
  examples(usage, [
    'troupe workspace usage',
    'troupe workspace usage --from 2026-06-01 --to 2026-06-30 --json',
  ]);
};

/** Returns the limits of the workspace after these changes: `NAME=VALUE`, or `NAME=default` for the server's limit. */
function changedLimits(now: WorkspaceLimits, changes: readonly string[]): NewWorkspaceLimits {
  const limits = new Map(
    LIMITS.filter((name) => now.set.includes(name)).map((name) => [name, now[name] ?? 0]),
  );
  for (const change of changes) {
    const [, name = '', value = ''] = /^(\w+)=(\d{1,8}|default)$/.exec(change) ?? [];
    const known = LIMITS.find((limit) => limit === name);
    if (known === undefined)
      throw new CommandFailure(
        `${change} is not a limit. Write NAME=NUMBER (0: no limit) or NAME=default, with one of ${LIMITS.join(', ')}.`,
        EXIT.usage,
      );
    if (value === 'default') limits.delete(known);
    else limits.set(known, Number(value));
  }
  return Object.fromEntries(limits);
}

const LIMITS = [
  'sessions',
  'runs',
  'streams',
  'filesMb',
  'files',
  'jobs',
  'sessionsPerUser',
  'runsPerUser',
] as const satisfies readonly (keyof NewWorkspaceLimits)[];

interface LimitRow {
  readonly name: string;
  readonly limit: string;
  readonly from: string;
}
const LIMIT_COLUMNS: readonly ListColumn<LimitRow>[] = [
  { title: 'limit', of: ({ name }) => name },
  { title: 'value', of: ({ limit }) => limit },
  { title: 'from', of: ({ from }) => from },
];

function limitRows(limits: WorkspaceLimits): LimitRow[] {
  return LIMITS.map((name) => ({
    name,
    limit: limits[name]?.toString() ?? 'none',
    from: limits.set.includes(name) ? 'this workspace' : 'the settings',
  }));
}

const MODEL_COLUMNS: readonly ListColumn<ModelUsage>[] = [
  { title: 'day', of: ({ day }) => day },
  { title: 'by', of: ({ userId }) => userId },
  { title: 'model', of: ({ model }) => model },
  { title: 'calls', of: ({ calls }) => String(calls) },
  { title: 'input', of: ({ inputTokens }) => String(inputTokens) },
  { title: 'cache read', of: ({ cacheReadTokens }) => String(cacheReadTokens) },
  { title: 'cache write', of: ({ cacheWriteTokens }) => String(cacheWriteTokens) },
  { title: 'output', of: ({ outputTokens }) => String(outputTokens) },
  { title: 'estimated calls', of: ({ estimatedCalls }) => String(estimatedCalls) },
];

/** Resolves with the usage, and with the tokens of all pages. */
async function wholeUsage(client: Client, days: { from?: string; to?: string }): Promise<WorkspaceUsage> {
  const first = await client.usage({ ...days, limit: 100 });
  const items = [...first.models.items];
  for (let after = first.models.nextCursor; after !== null; ) {
    const { models } = await client.usage({ ...days, limit: 100, after });
    items.push(...models.items);
    after = models.nextCursor;
  }
  return { ...first, models: { ...first.models, items, nextCursor: null } };
}

interface UsageRow {
  readonly of: string;
  readonly bytes: number;
  readonly entries?: number;
  readonly quota?: string;
}
const USAGE_COLUMNS: readonly ListColumn<UsageRow>[] = [
  { title: 'of', of: ({ of }) => of },
  { title: 'size', of: ({ bytes }) => sizeText(bytes) },
  { title: 'count', of: ({ entries }) => entries?.toString() ?? null },
  { title: 'quota', of: ({ quota }) => quota ?? null },
];

function rowsOf({ files, stored }: WorkspaceUsage): UsageRow[] {
  const { maxBytes, maxEntries } = files;
  const quota = [
    ...(maxBytes === null ? [] : [sizeText(maxBytes)]),
    ...(maxEntries === null ? [] : [`${maxEntries} entries`]),
  ].join(', ');
  return [
    {
      of: files.complete ? 'files' : 'files (at least)',
      bytes: files.bytes,
      entries: files.entries,
      quota: quota || 'none',
    },
    { of: stored.complete ? 'store' : 'store (at least)', bytes: stored.bytes, entries: stored.records },
    { of: '  notebooks', bytes: stored.notebooks },
    { of: '  runs', bytes: stored.runs },
    { of: '  assets', bytes: stored.assets },
    { of: '  conversations', bytes: stored.conversations },
    { of: '  audit', bytes: stored.audit },
    { of: '  other', bytes: stored.other },
  ];
}
