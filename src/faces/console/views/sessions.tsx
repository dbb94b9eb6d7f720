import type { NotebookSessionSummary } from '#src/contract/wire/lists.ts';
import { LinkToActor } from '../parts/actor-link.tsx';
import { Badge } from '../parts/badge.tsx';
import { Empty } from '../parts/empty.tsx';
import { ChoiceFilter, TextFilter } from '../parts/filter.tsx';
import { ListView, PAGE_ITEMS } from '../parts/list-view.tsx';
import { OpenPageAction } from '../parts/open-page.tsx';
import type { RowColumn } from '../parts/rows.tsx';
import { Age } from '../parts/time.tsx';
import { here, place } from '../state/route.ts';
import type { ViewProps } from '../view-props.ts';
import { SessionView } from './session.tsx';

const STATUSES = ['open', 'starting', 'ready', 'busy', 'restoring', 'failed', 'closing', 'closed'] as const;

/** The notebook sessions of the workspace, or one of them. */
export function Sessions({ rest: [id] }: ViewProps) {
  return id === undefined ? <SessionList /> : <SessionView id={id} />;
}

const COLUMNS: readonly RowColumn<NotebookSessionSummary>[] = [
  { title: 'Status', class: 'state', cell: ({ status }) => <Badge state={status} /> },
  {
    title: 'Notebook',
    class: 'grow',
    cell: ({ sessionId, title }) => <a href={here(['sessions', sessionId])}>{title ?? sessionId}</a>,
  },
  { title: 'Changed', class: 'number', cell: ({ updatedAt }) => <Age since={updatedAt} /> },
  { title: 'Mode', class: 'wide number', cell: ({ mode }) => mode },
  {
    title: 'Environment',
    class: 'wide links',
    cell: ({ environmentId }) =>
      environmentId !== null && <LinkToActor kind="environment" id={environmentId} brief />,
  },
  {
    title: 'Page',
    class: 'number',
    cell: ({ notebookId }) => <OpenPageAction key={notebookId} notebookId={notebookId} />,
  },
];

function SessionList() {
  const { status = 'open', title = '' } = place.value.filters;
  const known = STATUSES.find((one) => one === status);
  return (
    <ListView
      title="Sessions"
      lead="Notebooks that are open. A sleeping session is shown as ready, because its next use starts a kernel."
      columns={COLUMNS}
      load={(client, after, signal) =>
        client.notebookSessions.list({
          ...(known !== undefined && { status: known }),
          ...(title !== '' && { title }),
          order: 'desc',
          limit: PAGE_ITEMS,
          after,
          signal,
        })
      }
      inputs={[status, title]}
      renewal={{ follows: ['notebook-session'] }}
      filters={
        <>
          <TextFilter name="title" label="A part of a title" />
          <ChoiceFilter
            name="status"
            label="Status"
            all="Open"
            choices={[...STATUSES.slice(1), 'any'].map((value) => ({ value, title: value }))}
          />
        </>
      }
      empty={
        <Empty title="No session is open">
          Open a notebook: <code>troupe sessions open nb_…</code>
        </Empty>
      }
    />
  );
}
