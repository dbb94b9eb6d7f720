import { Action } from '../parts/action.tsx';
import { Badge } from '../parts/badge.tsx';
import { Conversation, useConversation } from '../parts/conversation.tsx';
import { Empty } from '../parts/empty.tsx';
import { Facts } from '../parts/facts.tsx';
import { Problem } from '../parts/problem.tsx';
import { ViewHead } from '../parts/view-head.tsx';
import { useClient } from '../state/data.ts';
import { here } from '../state/route.ts';
import { useTitles } from '../state/titles.ts';

/** One conversation, live: its messages, reasoning and tool calls. */
export function AgentView({ id }: { readonly id: string }) {
  const client = useClient();
  const { session, entries, draft, error } = useConversation(client, id);
  const runId = session?.currentRunId ?? null;
  const titleOf = useTitles(session?.notebookSessionId == null ? [] : [id]);
  return (
    <section class="view">
      <ViewHead
        title={titleOf(id)}
        aside={session !== undefined && <Badge state={session.status} />}
        actions={
          runId !== null && (
            <Action label="Cancel the prompt" isDanger run={() => client.runs.cancel(runId)} />
          )
        }
      >
        <p class="lead">
          {session?.notebookSessionId != null && (
            <a href={here(['sessions', session.notebookSessionId])}>Its notebook</a>
          )}{' '}
          <a href={here(['actors', 'agent-session', id])}>Its statechart</a>{' '}
          <a href={here(['runs'], { session: id })}>Its prompts</a>
        </p>
      </ViewHead>
      {session !== undefined && (
        <div class="card">
          <Facts
            facts={{
              owner: session.ownerId,
              model: session.config.model,
              instructions: session.config.instructions,
              datasources: session.context.datasourceSlugs.join(', ') || null,
            }}
          />
        </div>
      )}
      {error !== undefined && <Problem error={error} />}
      {entries.length === 0 && error === undefined && <Empty title="The conversation has no messages yet" />}
      <Conversation entries={entries} draft={draft} />
    </section>
  );
}
