import { InvalidArgumentError } from 'commander';
import type { Client } from '#src/contract/client/client.ts';
import type { Actor, ActorDetail, ActorFilters } from '#src/contract/wire/actor.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { actorLine, isAboutActor } from '../show/actor-line.ts';
import { styleOf } from '../style.ts';
import { type ListColumn, printJson, printJsonLine, printList, type Terminal } from '../terminal.ts';

const COLUMNS: readonly ListColumn<Actor>[] = [
  { title: 'kind', of: ({ kind }) => kind },
  { title: 'id', of: ({ id }) => id },
  { title: 'state', of: ({ path }) => path },
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

const DEFAULT_LIMIT = 1_000;
const MAX_PAGE = 100;

/**
 * `troupe actors`: lists the live actors of the workspace, and shows one with the commands that it takes and refuses.
 */
export const actors: CommandGroup = (program, { terminal, connect, wantsJson }) => {
  const group = program
    .command('actors')
    .summary('list the live actors of the workspace')
    .description(
      'list the live actors of the workspace: the environments, sessions, runs, jobs and hooks in memory',
    );
  const list = group
    .command('list', { isDefault: true })
    .description('list the live actors of the workspace')
    .option(
      '--kind <kind>',
      'only actors of this kind: environment, notebook-session, agent-session, run, job or hook',
    )
    .option('--state <path>', 'only actors in this state or in a state within it, such as live.busy')
    .option(
      '--find <text>',
      'only actors whose id contains the text, or whose related actors have such an id',
    )
    .option('--ended', 'also actors that ended lately')
    .option('--limit <count>', 'list at most this many actors', positive, DEFAULT_LIMIT)
    .option('--watch', 'print events of actors as they happen, in place of the list')
    .action(async ({ find: q, limit, watch, ...filters }: ListOptions, command) => {
      if (watch === true) {
        const { kind, state } = filters;
        const style = styleOf(terminal.color);
        for await (const event of connect(command).followActors({ kind })) {
          if (!isAboutActor(event, { state, find: q })) continue;
          if (wantsJson(command)) printJsonLine(terminal, event);
          else {
            const line = actorLine(event, style);
            if (line !== undefined) terminal.out(`${line}\n`);
          }
        }
        return;
      }
      const { items, isAll, silentWorkers } = await firstActors(connect(command), { ...filters, q }, limit);
      printList(terminal, items, COLUMNS, wantsJson(command));
      if (!isAll) terminal.err(`These are the first ${limit}; --limit shows more.\n`);
      if (silentWorkers > 0)
        terminal.err(`${silentWorkers} of the server's workers did not answer: their actors are missing.\n`);
    });
  examples(list, [
    'troupe actors',
    'troupe actors --kind run --state running',
    'troupe actors --watch --kind notebook-session',
    'troupe actors --json | jq \'.[] | select(.kind == "run")\'',
  ]);

  const show = group
    .command('show')
    .description(
      'show the state of an actor, the events that it takes and refuses, and its last events; no session is woken',
    )
    .argument('<kind>', 'environment, notebook-session, agent-session, run, job or hook')
    .argument('<id>', 'id of the actor')
    .action(async (kind: string, id: string, _, command) => {
      const actor = await connect(command).actor(kind, id);
      if (wantsJson(command)) printJson(terminal, actor);
      else printActor(terminal, actor);
    });
  examples(show, ['troupe actors show notebook-session nb_01…']);
};

interface ListOptions extends Omit<ActorFilters, 'q'> {
  readonly find?: string;
  readonly watch?: true;
  readonly limit: number;
}

/** Resolves with the first actors of the list, and with the number of workers that were missing from one of its pages. */
async function firstActors(
  client: Pick<Client, 'actors'>,
  filters: ActorFilters,
  limit: number,
): Promise<{ items: readonly Actor[]; isAll: boolean; silentWorkers: number }> {
  const items: Actor[] = [];
  let silentWorkers = 0;
  for (let after: string | undefined; ; ) {
    const page = await client.actors({ ...filters, limit: Math.min(limit, MAX_PAGE), after });
    items.push(...page.items);
    silentWorkers = Math.max(silentWorkers, page.silentWorkers ?? 0);
    if (page.nextCursor === null || items.length > limit)
      return { items: items.slice(0, limit), isAll: items.length <= limit, silentWorkers };
    after = page.nextCursor;
  }
}

function positive(text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new InvalidArgumentError('It must be a number of at least 1.');
  return count;
}

function printActor(terminal: Terminal, actor: ActorDetail): void {
  const facts = Object.entries({
    state: `${actor.path} since ${actor.since}`,
    presence: actor.presence,
    created: actor.createdAt,
    links: actor.links.map(({ kind, id }) => `${kind} ${id}`).join(', ') || '-',
    ...Object.fromEntries(
      Object.entries(actor.context).map(([name, value]) => [
        name,
        typeof value === 'string' ? value : JSON.stringify(value),
      ]),
    ),
    takes: actor.takes.join(' ') || '-',
  });
  terminal.out(`${actor.kind} ${actor.id}\n`);
  for (const [name, value] of facts) terminal.out(`  ${name.padEnd(12)}  ${value}\n`);
  if (actor.refuses.length > 0) terminal.out('\nRefused in this state:\n');
  for (const { type, code, title, advice } of actor.refuses) {
    terminal.out(`  ${type}: ${title} (${code}).${advice === null ? '' : ` ${advice}`}\n`);
  }
  if (actor.trail.length > 0) terminal.out('\nLast events:\n');
  for (const { at, type, from, to, refused } of actor.trail) {
    const move = from === to ? to : `${from} → ${to}`;
    terminal.out(
      `  ${at}  ${type}  ${refused === undefined ? move : `refused with ${refused} in ${from}`}\n`,
    );
  }
}
