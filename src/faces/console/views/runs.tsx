import { useSignal } from '@preact/signals';
import { ALL_RUN_STATUSES } from '#src/contract/client/runs.ts';
import type { Run, RunCancellationResult } from '#src/contract/wire/run.ts';
import { Action } from '../parts/action.tsx';
import { Id, LinkToActor } from '../parts/actor-link.tsx';
import { Badge } from '../parts/badge.tsx';
import { Empty } from '../parts/empty.tsx';
import { ChoiceFilter, TextFilter } from '../parts/filter.tsx';
import { ListView, PAGE_ITEMS } from '../parts/list-view.tsx';
import type { RowColumn } from '../parts/rows.tsx';
import { Took } from '../parts/took.tsx';
import { counted } from '../parts/words.ts';
import { useClient } from '../state/data.ts';
import { here, place } from '../state/route.ts';
import type { ViewProps } from '../view-props.ts';
import { RunView } from './run.tsx';

const KINDS = ['notebook', 'agent'] as const;

/** The runs of the workspace, or one of them. */
export function Runs({ rest: [id] }: ViewProps) {
  return id === undefined ? <RunList /> : <RunView id={id} />;
}

function RunList() {
  const client = useClient();
  const chosen = useSignal<ReadonlySet<string>>(new Set());
  const answers = useSignal<readonly RunCancellationResult[]>([]);
  const { status = '', kind = '', session: sessionId = '', order = '' } = place.value.filters;
  const choose = (id: string, isChosen: boolean) => {
    const next = new Set(chosen.value);
    if (isChosen) next.add(id);
    else next.delete(id);
    chosen.value = next;
  };
  const refused = answers.value.filter(({ error }) => error !== null);
  return (
    <ListView<Run>
      title="Runs"
      lead="Executions of notebooks and prompts of agents. The time of a run in progress is still counting. With the oldest first, a hanging run is at the top."
      columns={[
        {
          title: 'Choose',
          class: 'choose',
          cell: ({ id, status: is }) =>
            is === 'running' && (
              <input
                type="checkbox"
                aria-label={`Choose ${id}`}
                checked={chosen.value.has(id)}
                onChange={({ currentTarget }) => choose(id, currentTarget.checked)}
              />
            ),
        },
        ...COLUMNS,
      ]}
      load={(_, after, signal) =>
        client.runs.list({
          ...(isOne(ALL_RUN_STATUSES, status) && { status }),
          ...(isOne(KINDS, kind) && { kind }),
          ...(sessionId !== '' && { sessionId }),
          order: order === 'asc' ? 'asc' : 'desc',
          limit: PAGE_ITEMS,
          after,
          signal,
        })
      }
      inputs={[status, kind, sessionId, order]}
      renewal={{ follows: ['run'] }}
      filters={
        <>
          <ChoiceFilter
            name="status"
            label="Status"
            all="All statuses"
            choices={ALL_RUN_STATUSES.map(plainChoice)}
          />
          <ChoiceFilter name="kind" label="Kind" all="All kinds" choices={KINDS.map(plainChoice)} />
          <ChoiceFilter
            name="order"
            label="Order"
            all="Newest first"
            choices={[{ value: 'asc', title: 'Oldest first' }]}
          />
          <TextFilter name="session" label="Id of a session" />
        </>
      }
      actions={
        chosen.value.size > 0 && (
          <Action
            label={`Cancel ${counted(chosen.value.size, 'run')}`}
            confirm="Their results so far stay. Cancel them?"
            isDanger
            run={async () => {
              answers.value = await client.runs.cancelMany([...chosen.value]);
              chosen.value = new Set();
            }}
          />
        )
      }
      empty={
        <Empty title="There are no such runs">
          A run begins when cells are executed or an agent is prompted: <code>troupe run analysis.py</code>
        </Empty>
      }
    >
      {refused.length > 0 && (
        <ul class="problem" role="alert">
          {refused.map(({ runId, error }) => (
            <li key={runId}>
              {runId}: {error?.message} <code>{error?.code}</code>
            </li>
          ))}
        </ul>
      )}
    </ListView>
  );
}

const COLUMNS: readonly RowColumn<Run>[] = [
  {
    title: 'Status',
    class: 'state',
    cell: ({ status, stale }) => <Badge state={stale === true ? 'stale' : status} />,
  },
  {
    title: 'Run',
    class: 'grow',
    cell: ({ id }) => (
      <a href={here(['runs', id])} class="actor-link" aria-label={`run ${id}`}>
        <Id id={id} />
      </a>
    ),
  },
  { title: 'Took', class: 'number', cell: (run) => <Took run={run} /> },
  { title: 'Kind', class: 'wide event', cell: ({ kind }) => kind },
  {
    title: 'Why it failed',
    class: 'wide event',
    cell: ({ error }) => error !== null && <code class="bad">{error.code}</code>,
  },
  {
    title: 'Session',
    class: 'wide links',
    cell: ({ kind, sessionId }) => <LinkToActor kind={`${kind}-session`} id={sessionId} brief />,
  },
];

function plainChoice(value: string) {
  return { value, title: value };
}

function isOne<Word extends string>(words: readonly Word[], word: string): word is Word {
  return words.some((one) => one === word);
}
