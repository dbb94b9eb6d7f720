import { useSignal } from '@preact/signals';
import type { AgentEntry, AgentSession } from '#src/wire/agent.ts';
import { Action } from '../parts/action.tsx';
import { Badge } from '../parts/badge.tsx';
import { Empty } from '../parts/empty.tsx';
import { Facts } from '../parts/facts.tsx';
import { Problem } from '../parts/problem.tsx';
import { ViewHead } from '../parts/view-head.tsx';
import { clock, textOf } from '../parts/words.ts';
import { useClient, useWhileSeen } from '../state/data.ts';
import { here } from '../state/route.ts';
import { useTitles } from '../state/titles.ts';

/** One conversation, live: its messages, reasoning and tool calls. */
export function AgentView({ id }: { readonly id: string }) {
  const client = useClient();
  const { session, entries, draft, error } = useConversation(id);
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

type Session = Omit<AgentSession, 'entries'>;

/** Returns the conversation as its stream tells it. */
function useConversation(id: string) {
  const client = useClient();
  const session = useSignal<Session | undefined>(undefined);
  const entries = useSignal<readonly AgentEntry[]>([]);
  const draft = useSignal('');
  const error = useSignal<unknown>(undefined);
  const change = (changes: Partial<Session>) => {
    if (session.value !== undefined) session.value = { ...session.value, ...changes };
  };
  useWhileSeen(
    async (signal) => {
      try {
        let isOpen = false;
        for await (const event of client.agentSessions.follow(id, { signal, observe: true })) {
          isOpen = true;
          error.value = undefined;
          switch (event.type) {
            case 'session.snapshot':
              session.value = event.data;
              entries.value = event.data.entries;
              draft.value = '';
              break;
            case 'session.status':
              change({ status: event.data.status });
              break;
            case 'run-status':
              change({ currentRunId: event.data.status === 'running' ? event.data.runId : null });
              break;
            case 'agent-entry':
              // A prompt that did not complete is sent again, with its outcome.
              entries.value = entries.value.some(({ id }) => id === event.data.id)
                ? entries.value.map((one) => (one.id === event.data.id ? event.data : one))
                : [...entries.value, event.data];
              draft.value = '';
              break;
            case 'text-delta':
              draft.value += event.data.text;
              break;
            case 'session.closed':
              change({ status: 'closed', currentRunId: null });
              break;
            default:
          }
        }
        if (isOpen) return;
        // A conversation that is closed has no stream.
        const closed = await client.agentSessions.get(id, { signal });
        error.value = undefined;
        session.value = closed;
        entries.value = closed.entries;
      } catch (reason) {
        if (!signal.aborted) error.value = reason;
        throw reason;
      }
    },
    [id],
  );
  return { session: session.value, entries: entries.value, draft: draft.value, error: error.value };
}

const OUTCOMES = {
  cancelled: 'cancelled',
  failed: 'failed',
  limit: 'stopped at a limit',
  stale: 'cut off when the server stopped',
} as const;

function Entry({ entry: { role, content, createdAt, outcome } }: { readonly entry: AgentEntry }) {
  return (
    <li class={`cell message ${role}`}>
      <header>
        <b>{role}</b> <time dateTime={createdAt}>{clock(createdAt)}</time>
        {outcome !== undefined && <em> {OUTCOMES[outcome]}</em>}
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
