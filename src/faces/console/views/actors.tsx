import { useEffect, useRef } from 'preact/hooks';
import type { Actor, ActorPage } from '#src/contract/wire/actor.ts';
import { LinkToActor } from '../parts/actor-link.tsx';
import { Badge } from '../parts/badge.tsx';
import { Empty, Loading } from '../parts/empty.tsx';
import { ChoiceFilter, SwitchFilter, TextFilter } from '../parts/filter.tsx';
import { Problem } from '../parts/problem.tsx';
import { type RowColumn, Rows } from '../parts/rows.tsx';
import { Age } from '../parts/time.tsx';
import { ViewHead } from '../parts/view-head.tsx';
import { count, counted } from '../parts/words.ts';
import { type ActorMove, useActorMoves } from '../state/actor-moves.ts';
import { usePages } from '../state/pages.ts';
import { here, place } from '../state/route.ts';
import type { ViewProps } from '../view-props.ts';
import { ActorView } from './actor.tsx';
import { ActorTreeRows } from './actor-tree.tsx';

const PAGE = 100;
/** The pause between two loads of the counts, which come with the list. Transitions are shown at once. */
const COUNTS_EVERY_MS = 5_000;

/** All actors of the workspace, or one of them. */
export function Actors({ rest: [kind, id] }: ViewProps) {
  if (kind !== undefined && id !== undefined) return <ActorView kind={kind} id={id} />;
  return place.value.filters.tree === 'true' ? <ActorTree /> : <ActorList />;
}

function ActorTree() {
  const { q = '' } = place.value.filters;
  return (
    <section class="view fills">
      <ViewHead title="Actors">
        <p class="lead">
          Environments with their sessions and agents, their runs and jobs; and hooks. Of the actors at one
          level, the one that has been longest in its state comes first.
        </p>
        <div class="filters">
          <TextFilter name="q" label="A part of an id" />
          <SwitchFilter name="tree" label="As a tree" />
        </div>
      </ViewHead>
      <ActorTreeRows q={q} />
    </section>
  );
}

const COLUMNS: readonly RowColumn<Actor>[] = [
  { title: 'State', class: 'state', cell: ({ path }) => <Badge state={path} /> },
  {
    title: 'Actor',
    class: 'grow',
    cell: ({ kind, id }) => <LinkToActor kind={kind} id={id} />,
  },
  { title: 'For', class: 'number', cell: ({ since }) => <Age since={since} /> },
  {
    title: 'Last event',
    class: 'wide event',
    cell: ({ lastEvents }) => <code>{lastEvents.at(-1)?.type ?? ''}</code>,
  },
  {
    title: 'Related actors',
    class: 'wide links',
    cell: ({ links }) => links.slice(0, 2).map((link) => <LinkToActor key={link.id} {...link} brief />),
  },
];

function ActorList() {
  const { kind = '', state = '', q = '', ended = '' } = place.value.filters;
  const pages = usePages<Actor, ActorPage>(
    (client, after, signal) =>
      client.actors({
        ...(kind !== '' && { kind }),
        ...(state !== '' && { state }),
        ...(q !== '' && { q }),
        ...(ended !== '' && { ended: true }),
        after,
        limit: PAGE,
        signal,
      }),
    [kind, state, q, ended],
  );
  const staleCounts = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useActorMoves(
    kind,
    (moves) => {
      const { items = [] } = pages;
      const known = new Set(items.map(keyOf));
      const isListed = ([key, { type }]: readonly [string, ActorMove]) =>
        known.has(key) === (type === 'actor.moved');
      // The list lacks actors that have come into memory since it was loaded, and still has actors that have left.
      if (![...moves].every(isListed)) pages.refresh();
      else
        staleCounts.current ??= setTimeout(() => {
          staleCounts.current = undefined;
          pages.refresh();
        }, COUNTS_EVERY_MS);
      pages.patch((actor) => moved(actor, moves.get(keyOf(actor))));
    },
    pages.refresh,
  );
  useEffect(() => () => clearTimeout(staleCounts.current), []);
  const counts = pages.head?.counts ?? [];
  const matching = counts.filter((one) => (kind === '' || one.kind === kind) && liesIn(one.state, state));
  const total = sum(matching);
  return (
    <section class="view fills">
      <ViewHead title="Actors" aside={pages.head && <span class="faint">{count(total)}</span>}>
        <p class="lead">
          Every environment, session, run, job and hook that is in memory, by what it is doing now. Jobs and
          hooks at rest leave memory.
        </p>
        <div class="filters">
          <TextFilter name="q" label="A part of an id" />
          <ChoiceFilter name="kind" label="Kind" all="All kinds" choices={kindChoices(counts)} />
          <ChoiceFilter name="state" label="State" all="All states" choices={stateChoices(counts, kind)} />
          <SwitchFilter name="ended" label="Ended lately, too" />
          <SwitchFilter name="tree" label="As a tree" />
        </div>
      </ViewHead>
      {pages.error !== undefined && <Problem error={pages.error} retry={pages.reload} />}
      {pages.items === undefined && pages.error === undefined && <Loading />}
      {pages.items?.length === 0 && <NoActors isFiltered={kind + state + q !== ''} />}
      {pages.items !== undefined && pages.items.length > 0 && (
        <Rows label="Actors" columns={COLUMNS} items={pages.items} total={total} onEnd={pages.more} />
      )}
    </section>
  );
}

function keyOf({ kind, id }: Actor): string {
  return `${kind}/${id}`;
}

/** Returns the actor after the event; undefined when it has left memory. */
function moved(actor: Actor, event: ActorMove | undefined): Actor | undefined {
  if (event === undefined) return actor;
  if (event.type === 'actor.left')
    return event.data.presence === 'deleted' ? undefined : { ...actor, path: event.data.state };
  const { to, since, revision, links, events } = event.data;
  // Only the last event is shown, because a list of all events would grow without end.
  const lastEvents = [...actor.lastEvents, ...events.map((type) => ({ type, at: since }))].slice(-1);
  return { ...actor, path: to, since, revision, links, lastEvents };
}

function NoActors({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty title="No actor matches">
        Actors that have left memory are not listed.{' '}
        <a href={here(['actors'], { ended: 'true' })}>Show all, also ended ones</a>
      </Empty>
    );
  return (
    <Empty title="Nothing is in memory">
      An actor appears with the first session or run: <code>troupe run analysis.py</code>
    </Empty>
  );
}

type Counts = ActorPage['counts'];

function kindChoices(counts: Counts) {
  const kinds = [...new Set(counts.map(({ kind }) => kind))];
  return kinds.map((kind) => ({
    value: kind,
    title: counted(sum(counts.filter((one) => one.kind === kind)), kind),
  }));
}

function stateChoices(counts: Counts, kind: string) {
  const within = counts.filter((one) => kind === '' || one.kind === kind);
  const states = [...new Set(within.map(({ state }) => state))].sort();
  return states.map((state) => ({
    value: state,
    title: `${state} (${count(sum(within.filter((one) => one.state === state)))})`,
  }));
}

function sum(counts: Counts): number {
  return counts.reduce((total, one) => total + one.count, 0);
}

/** Returns whether `path` is the wanted state or a state within it. */
function liesIn(path: string, wanted: string): boolean {
  return wanted === '' || path === wanted || path.startsWith(`${wanted}.`);
}
