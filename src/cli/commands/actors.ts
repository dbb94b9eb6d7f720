import type { LiveActor } from '#src/wire/operations.ts';
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

/** `troupe actors`: lists the live actors of the workspace. */
export const actors: CommandGroup = (program, { terminal, connect, wantsJson }) => {
  const command = program
    .command('actors')
    .summary('list the live actors of the workspace')
    .description('list the live actors of the workspace: the environments, sessions and runs in memory')
    .action(async (_, command) => {
      const { items } = await connect(command).actors();
      printList(terminal, items, COLUMNS, wantsJson(command));
    });
  examples(command, ['troupe actors', 'troupe actors --json | jq \'.[] | select(.kind == "run")\'']);
};

/** Returns the state of a chart as a path, such as `open.vacant`, and parallel regions side by side. */
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
