import type { ActorDetail } from '#src/contract/wire/actor.ts';
import { LinkToActor } from '../parts/actor-link.tsx';
import { Badge } from '../parts/badge.tsx';
import { ChartPicture } from '../parts/chart-picture.tsx';
import { Loading } from '../parts/empty.tsx';
import { Facts } from '../parts/facts.tsx';
import { Problem } from '../parts/problem.tsx';
import { Age } from '../parts/time.tsx';
import { ViewHead } from '../parts/view-head.tsx';
import { clock, counted, dateTime } from '../parts/words.ts';
import { useActor } from '../state/one-actor.ts';
import { here } from '../state/route.ts';
import { isSession, useTitles } from '../state/titles.ts';

const PRESENCE: Readonly<Record<ActorDetail['presence'], string>> = {
  live: 'in memory',
  stored: 'only in the store; the next use brings it into memory',
  ended: 'has ended',
  failed: 'removed from memory by an error of the server; the next use restores it',
};

/** The view of each kind of actor, for links from the actor to its subject. */
const VIEW_OF: Readonly<Record<string, string>> = {
  'notebook-session': 'sessions',
  'agent-session': 'agents',
  run: 'runs',
};

/** One actor: its state, the commands that it takes or refuses, and its history. */
export function ActorView({ kind, id }: { readonly kind: string; readonly id: string }) {
  const actor = useActor(kind, id);
  const title = useTitles(isSession(kind) ? [id] : [])(id);
  const { value } = actor;
  if (value === undefined)
    return (
      <section class="view">
        <ViewHead title={`${kind} ${id}`} />
        {actor.error === undefined ? <Loading /> : <Problem error={actor.error} retry={actor.reload} />}
      </section>
    );
  return (
    <section class="view">
      <ViewHead title={id} aside={<Badge state={value.path} />}>
        <p class="lead">
          {title !== id && (
            <>
              <b>{title}</b>,{' '}
            </>
          )}
          {kind}, {PRESENCE[value.presence]}; in this state for <Age since={value.since} />.{' '}
          {VIEW_OF[kind] !== undefined && (
            <a href={here([VIEW_OF[kind], id])}>The view of this {kind}, with its actions</a>
          )}
        </p>
      </ViewHead>
      {actor.error !== undefined && <Problem error={actor.error} />}
      <div class="columns">
        <Answers actor={value} />
        <div class="card">
          <h2>What has happened</h2>
          <Trail actor={value} />
        </div>
        <div class="card full">
          <h2>Statechart</h2>
          <ChartPicture actor={value} />
        </div>
        <div class="card full">
          <h2>Facts</h2>
          <Facts
            facts={{
              ...value.context,
              created: dateTime(value.createdAt),
              'stored transitions': value.revision,
            }}
          />
          {value.links.length > 0 && (
            <>
              <h3>Related actors</h3>
              <ul class="links">
                {value.links.map((link) => (
                  <li key={`${link.kind}/${link.id}`}>
                    <LinkToActor {...link} />
                  </li>
                ))}
              </ul>
            </>
          )}
        </div>
      </div>
    </section>
  );
}

function Answers({ actor: { takes, refuses } }: { readonly actor: ActorDetail }) {
  return (
    <div class="card answers">
      <h2>Commands that it takes and refuses now</h2>
      <ul>
        {refuses.map(({ type, code, title, advice }) => (
          <li key={type} class="refused">
            <code>{type}</code>
            <p>
              {title} <small>{code}</small>
              {advice !== null && <span class="advice">{advice}</span>}
            </p>
          </li>
        ))}
        {takes.length > 0 && (
          <li class="taken">
            <span>Takes</span>
            <p>
              {takes.map((type) => (
                <code key={type}>{type}</code>
              ))}
            </p>
          </li>
        )}
      </ul>
    </div>
  );
}

function Trail({ actor: { trail, refuses } }: { readonly actor: ActorDetail }) {
  if (trail.length === 0) return <p class="faint">No events since the actor came into memory.</p>;
  const adviceOf = (code: string) => refuses.find((one) => one.code === code)?.advice;
  const refusedCount = trail.filter(({ refused }) => refused !== undefined).length;
  return (
    <>
      <p class="faint">
        {counted(trail.length, 'event')}, the last first{refusedCount > 0 && `; ${refusedCount} refused`}
      </p>
      <ol class="trail">
        {inSeries(trail.toReversed()).map(({ at, type, from, to, refused, times }, i) => (
          <li key={`${at}${type}${i}`} class={refused === undefined ? '' : 'refused'}>
            <time dateTime={at}>{clock(at)}</time>
            <code>{type}</code>
            {refused === undefined ? (
              <span class="moved">{from === to ? 'stayed' : `→ ${to}`}</span>
            ) : (
              <span class="moved">
                refused {times > 1 && `${times} times `}with <b>{refused}</b> in {from}
                {adviceOf(refused) != null && <span class="advice">{adviceOf(refused)}</span>}
              </span>
            )}
          </li>
        ))}
      </ol>
    </>
  );
}

type TrailEntry = ActorDetail['trail'][number];

/** Joins consecutive refusals of the same command for the same reason. */
function inSeries(trail: readonly TrailEntry[]): (TrailEntry & { readonly times: number })[] {
  const joined: (TrailEntry & { times: number })[] = [];
  for (const entry of trail) {
    const last = joined.at(-1);
    const isSame =
      entry.refused !== undefined &&
      last?.refused === entry.refused &&
      last.type === entry.type &&
      last.from === entry.from;
    if (isSame) last.times++;
    else joined.push({ ...entry, times: 1 });
  }
  return joined;
}
