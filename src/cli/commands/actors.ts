import type { LiveActor } from '#src/client/operations.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { type Column, printList } from '../terminal.ts';

const COLUMNS: readonly Column<LiveActor>[] = [
  { title: 'kind', of: ({ kind }) => kind },
  { title: 'id', of: ({ id }) => id },
  { title: 'state', of: ({ state }) => stateText(state) },
  { title: 'since', of: ({ since }) => since },
  { title: 'revision', of: ({ revision }) => String(revision) },
  {
    title: 'last events',
    of: ({ lastEvents }) =>
      lastEvents
        .map(({ type }) => type)
        .slice(-4)
        .join(' ') || null,
  },
];

export const actors: CommandGroup = (program, { terminal, connect, wantsJson }) => {
  const command = program
    .command('actors')
    .summary('look into the live actors of the workspace')
    .description('look into the live actors of the workspace: environments, sessions and runs in memory')
    .action(async (_, command) => {
      const { items } = await connect(command).actors();
      printList(terminal, items, COLUMNS, wantsJson(command));
    });
  examples(command, ['troupe actors', 'troupe actors --json | jq \'.[] | select(.kind == "run")\'']);
};

/** The state of a chart as a path, such as `open.vacant`; regions that are in parallel stand beside each other. */
function stateText(state: unknown): string {
  if (typeof state !== 'object' || state === null) return String(state);
  const regions = Object.entries(state).map(([name, below]) =>
    stateText(below)
      .split(' ')
      .map((path) => `${name}.${path}`)
      .join(' '),
  );
  return regions.join(' ');
}
