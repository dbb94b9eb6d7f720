import type { AgentSessionSummary } from '#src/contract/wire/agent.ts';
import { LinkToActor } from '../parts/actor-link.tsx';
import { Badge } from '../parts/badge.tsx';
import { Empty } from '../parts/empty.tsx';
import { ListView, PAGE_ITEMS } from '../parts/list-view.tsx';
import type { RowColumn } from '../parts/rows.tsx';
import { Age } from '../parts/time.tsx';
import { here } from '../state/route.ts';
import type { ViewProps } from '../view-props.ts';
import { AgentView } from './agent.tsx';

/** The conversations of the workspace, or one of them. */
export function Agents({ rest: [id] }: ViewProps) {
  return id === undefined ? <AgentList /> : <AgentView id={id} />;
}

const COLUMNS: readonly RowColumn<AgentSessionSummary>[] = [
  { title: 'Status', class: 'state', cell: ({ status }) => <Badge state={status} /> },
  {
    title: 'Conversation',
    class: 'grow',
    cell: ({ sessionId }) => <a href={here(['agents', sessionId])}>{sessionId}</a>,
  },
  { title: 'Changed', class: 'number', cell: ({ updatedAt }) => <Age since={updatedAt} /> },
  { title: 'Owner', class: 'wide event', cell: ({ ownerId }) => ownerId },
  { title: 'Model', class: 'wide links', cell: ({ config }) => config.model ?? 'none' },
  {
    title: 'Notebook',
    class: 'wide links',
    cell: ({ notebookSessionId: id }) => id !== null && <LinkToActor kind="notebook-session" id={id} brief />,
  },
];

function AgentList() {
  return (
    <ListView
      title="Agents"
      lead="Conversations with models, with their owners and notebooks."
      columns={COLUMNS}
      load={(client, after, signal) =>
        client.agentSessions.list({ order: 'desc', limit: PAGE_ITEMS, after, signal })
      }
      inputs={[]}
      renewal={{ follows: ['agent-session'] }}
      empty={
        <Empty title="There are no conversations">
          Begin one: <code>troupe agent new</code>
        </Empty>
      }
    />
  );
}
