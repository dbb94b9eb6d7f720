import { LinkToActor } from '../parts/actor-link.tsx';
import { Badge } from '../parts/badge.tsx';
import { Bar } from '../parts/bar.tsx';
import { Empty, Loading } from '../parts/empty.tsx';
import { Problem } from '../parts/problem.tsx';
import { Age } from '../parts/time.tsx';
import { ViewHead } from '../parts/view-head.tsx';
import { bytes, clock, count, counted } from '../parts/words.ts';
import { counts, isTold, refusals } from '../state/changes.ts';
import { useData } from '../state/data.ts';
import { here } from '../state/route.ts';
import { isSession, useTitles } from '../state/titles.ts';
import { useKernels } from './kernels.tsx';
import { ServerTiles } from './server-tiles.tsx';

const MAX_LISTED = 6;

/** An overview of the workspace: hanging runs, the largest kernels, and recent refusals. */
export function Overview() {
  const present = counts.value;
  return (
    <section class="view">
      <ViewHead title="Overview" />
      {isTold.value === false && <p class="notice">Only owners of the workspace see what its actors do.</p>}
      {present === undefined && isTold.value !== false && <Loading />}
      {present?.length === 0 && (
        <Empty title="Nothing runs in this workspace">
          Start something: <code>troupe run analysis.py</code>
        </Empty>
      )}
      <div class="tiles">
        {[...new Set(present?.map(({ kind }) => kind))].map((kind) => {
          const states = (present ?? []).filter((one) => one.kind === kind);
          const all = states.reduce((sum, one) => sum + one.count, 0);
          return (
            <div class="tile" key={kind}>
              <h2>
                <a href={here(['actors'], { kind })}>{TITLES[kind] ?? kind}</a>
              </h2>
              <p class="figure">{count(all)}</p>
              <ul>
                {states.map(({ state, count: howMany }) => (
                  <li key={state}>
                    <a href={here(['actors'], { kind, state })}>
                      <Badge state={state} /> <span>{count(howMany)}</span>
                    </a>
                  </li>
                ))}
              </ul>
            </div>
          );
        })}
      </div>
      <div class="columns even">
        <RunningRuns />
        {isTold.value !== false && <LargestKernels />}
        {isTold.value !== false && <Refusals />}
        <FailedRuns />
      </div>
      <ServerTiles />
    </section>
  );
}

const TITLES: Readonly<Record<string, string>> = {
  environment: 'Environments',
  'notebook-session': 'Notebook sessions',
  'agent-session': 'Agent sessions',
  run: 'Runs in memory',
  job: 'Jobs in memory',
  hook: 'Hooks in memory',
};

function RunningRuns() {
  const runs = useData(
    (client, signal) => client.runs.list({ status: 'running', limit: MAX_LISTED, signal }),
    [],
    { follows: ['run'] },
  );
  const titleOf = useTitles((runs.value?.items ?? []).map(({ sessionId }) => sessionId));
  return (
    <div class="card">
      <h2>
        <a href={here(['runs'], { status: 'running', order: 'asc' })}>Running longest</a>
      </h2>
      {runs.error !== undefined && <Problem error={runs.error} retry={runs.reload} />}
      {runs.value?.items.length === 0 && <p class="faint">No run is in flight.</p>}
      <ul class="list">
        {runs.value?.items.map(({ id, createdAt, stale, sessionId }) => (
          <li key={id}>
            <Badge state={stale === true ? 'stale' : 'running'} />
            <a href={here(['runs', id])}>{id}</a>
            <Age since={createdAt} />
            <span class="full">in {titleOf(sessionId)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function LargestKernels() {
  const { items, value, error, reload } = useKernels({ limit: MAX_LISTED });
  const largest = items ?? [];
  const titleOf = useTitles(largest.map(({ sessionId }) => sessionId));
  const limit = value?.memoryLimitBytes ?? largest[0]?.memoryBytes ?? 1;
  return (
    <div class="card">
      <h2>
        <a href={here(['kernels'])}>Kernels with most memory</a>
      </h2>
      {error !== undefined && <Problem error={error} retry={reload} />}
      {items?.length === 0 && <p class="faint">No kernel runs.</p>}
      <ul class="list meters">
        {largest.map(({ sessionId, memoryBytes, cpu }) => (
          <li key={sessionId}>
            <a href={here(['sessions', sessionId])} title={sessionId}>
              {titleOf(sessionId)}
            </a>
            <span class="amount">{bytes(memoryBytes)}</span>
            <Bar value={memoryBytes} limit={limit} label={`of ${bytes(limit)}`} />
            <span class="faint">{cpu === undefined ? '' : `${Math.round(cpu * 100)} % CPU`}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Refusals() {
  const refused = refusals().slice(0, MAX_LISTED);
  const titleOf = useTitles(refused.flatMap(({ kind, id }) => (isSession(kind) ? [id] : [])));
  return (
    <div class="card">
      <h2>
        <a href={here(['streams'], { q: 'refused' })}>Refused since you opened the console</a>
      </h2>
      {refused.length === 0 && (
        <p class="faint">
          Nothing was refused. Earlier refusals are listed with each actor, under “What has happened”.
        </p>
      )}
      <ul class="list">
        {refused.map(({ key, kind, id, event, count: times, title, advice, time }) => (
          <li key={key}>
            <LinkToActor kind={kind} id={id} title={titleOf(id)} />
            <span>
              <code class="bad">{event}</code>
              {times > 1 && ` ${count(times)} times`}
            </span>
            <time dateTime={time}>{clock(time)}</time>
            <p class="full">
              {title}
              {advice !== null && <span class="advice">{advice}</span>}
            </p>
          </li>
        ))}
      </ul>
    </div>
  );
}

function FailedRuns() {
  const runs = useData(
    (client, signal) => client.runs.list({ status: 'failed', order: 'desc', limit: MAX_LISTED, signal }),
    [],
    { follows: ['run'] },
  );
  return (
    <div class="card">
      <h2>
        <a href={here(['runs'], { status: 'failed' })}>Failed lately</a>
      </h2>
      {runs.error !== undefined && <Problem error={runs.error} retry={runs.reload} />}
      {runs.value?.items.length === 0 && <p class="faint">No run has failed.</p>}
      <ul class="list">
        {runs.value?.items.map(({ id, error, finishedAt }) => (
          <li key={id}>
            <a href={here(['runs', id])}>{id}</a>
            {finishedAt !== null && <Age since={finishedAt} />}
            <p class="full">
              {error?.message} <small>{error?.code}</small>
            </p>
          </li>
        ))}
      </ul>
      {runs.value?.nextCursor != null && <p class="faint">{counted(MAX_LISTED, 'run')} of more</p>}
    </div>
  );
}
