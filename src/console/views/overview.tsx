import { ActorLink } from '../parts/actor-link.tsx';
import { Badge } from '../parts/badge.tsx';
import { Empty, Loading } from '../parts/empty.tsx';
import { Problem } from '../parts/problem.tsx';
import { Age } from '../parts/time.tsx';
import { ViewHead } from '../parts/view-head.tsx';
import { count } from '../parts/words.ts';
import { useData } from '../state/data.ts';
import { here } from '../state/route.ts';

const EVERY_MS = 2000;

/** What happens in the workspace, at a glance. */
export function Overview() {
  const actors = useData((client, signal) => client.actors({ limit: 1, signal }), [], { everyMs: EVERY_MS });
  const running = useData((client, signal) => client.runs.list({ status: 'running', limit: 8, signal }), [], {
    everyMs: EVERY_MS,
  });
  const counts = actors.value?.counts;
  return (
    <section class="view">
      <ViewHead title="Overview" />
      {actors.error !== undefined && <Problem error={actors.error} retry={actors.reload} />}
      {counts === undefined && actors.error === undefined && <Loading />}
      {counts?.length === 0 && (
        <Empty title="Nothing runs in this workspace">
          Start something: <code>troupe run analysis.py</code>
        </Empty>
      )}
      <div class="tiles">
        {[...new Set(counts?.map(({ kind }) => kind))].map((kind) => {
          const states = (counts ?? []).filter((one) => one.kind === kind);
          return (
            <div class="tile" key={kind}>
              <h2>
                <a href={here(['actors'], { kind })}>{kind}s</a>
              </h2>
              <p class="figure">{count(states.reduce((sum, one) => sum + one.count, 0))}</p>
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
      <div class="card">
        <h2>Running now, longest first</h2>
        {running.value?.items.length === 0 && <p class="faint">No run is in flight.</p>}
        <ul class="list">
          {running.value?.items.map(({ id, createdAt, stale }) => (
            <li key={id}>
              <Badge state={stale === true ? 'stale' : 'running'} /> <ActorLink kind="run" id={id} />{' '}
              <Age since={createdAt} />
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}
