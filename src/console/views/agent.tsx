import { useSignal } from '@preact/signals';
import type { AgentEntry } from '#src/wire/agent.ts';
import { Action } from '../parts/action.tsx';
import { Badge } from '../parts/badge.tsx';
import { Empty } from '../parts/empty.tsx';
import { Facts } from '../parts/facts.tsx';
import { Problem } from '../parts/problem.tsx';
import { ViewHead } from '../parts/view-head.tsx';
import { clock, textOf } from '../parts/words.ts';
import { useClient, useData, useWhileSeen } from '../state/data.ts';
import { here } from '../state/route.ts';

/** One conversation: what was said, thought and done, live. */
export function AgentView({ id }: { readonly id: string }) {
  const client = useClient();
  const session = useData((_, signal) => client.agentSessions.get(id, { signal }), [id], { everyMs: 3000 });
  const { entries, draft, error } = useConversation(id);
  const { value } = session;
  return (
    <section class="view">
      <ViewHead
        title={id}
        aside={value !== undefined && <Badge state={value.status} />}
        actions={
          value?.currentRunId != null && (
            <Action
              label="Cancel the prompt"
              isDanger
              run={() => client.runs.cancel(value.currentRunId ?? '')}
            />
          )
        }
      >
        <p class="lead">
          <a href={here(['actors', 'agent-session', id])}>Its statechart</a>{' '}
          <a href={here(['runs'], { session: id })}>Its prompts</a>
        </p>
      </ViewHead>
      {session.error !== undefined && <Problem error={session.error} retry={session.reload} />}
      {value !== undefined && (
        <div class="card">
          <Facts
            facts={{
              owner: value.ownerId,
              model: value.config.model,
              instructions: value.config.instructions,
              datasources: value.context.datasourceSlugs.join(', ') || null,
              notebook: value.notebookSessionId,
            }}
          />
        </div>
      )}
      {error !== undefined && <Problem error={error} />}
      {entries.length === 0 && error === undefined && <Empty title="Nothing was said yet" />}
      <ol class="stack conversation">
        {entries.map((entry) => (
          <Entry key={entry.id} entry={entry} />
        ))}
        {draft !== '' && (
          <li class="cell message">
            <header>
              <b>assistant</b> <Badge state="thinking" />
            </header>
            <pre>{draft}</pre>
          </li>
        )}
      </ol>
    </section>
  );
}

function useConversation(id: string) {
  const client = useClient();
  const entries = useSignal<readonly AgentEntry[]>([]);
  const draft = useSignal('');
  const error = useSignal<unknown>(undefined);
  useWhileSeen(
    async (signal) => {
      try {
        for await (const event of client.agentSessions.follow(id, { signal, observe: true })) {
          if (event.type === 'session.snapshot') entries.value = event.data.entries;
          else if (event.type === 'agent-entry') {
            entries.value = [...entries.value.filter((one) => one.id !== event.data.id), event.data];
            draft.value = '';
          } else if (event.type === 'text-delta') draft.value += event.data.text;
        }
      } catch (reason) {
        if (!signal.aborted) error.value = reason;
      }
    },
    [id],
  );
  return { entries: entries.value, draft: draft.value, error: error.value };
}

function Entry({ entry: { role, content, createdAt } }: { readonly entry: AgentEntry }) {
  return (
    <li class={`cell message ${role}`}>
      <header>
        <b>{role}</b> <time dateTime={createdAt}>{clock(createdAt)}</time>
      </header>
      {content.map((part, i) => (
        <Part key={i} part={part} />
      ))}
    </li>
  );
}

function Part({ part }: { readonly part: AgentEntry['content'][number] }) {
  switch (part.type) {
    case 'text':
      return <pre>{part.text}</pre>;
    case 'reasoning':
      return (
        <details>
          <summary>Reasoning</summary>
          <pre>{part.text}</pre>
        </details>
      );
    case 'tool-call':
      return (
        <details open>
          <summary>
            calls <code>{part.name}</code>
          </summary>
          <pre>{textOf(part.input)}</pre>
        </details>
      );
    case 'tool-result':
      return (
        <details>
          <summary>
            <code>{part.name}</code> <Badge state={part.status} />
          </summary>
          <pre>{part.output}</pre>
        </details>
      );
  }
}
