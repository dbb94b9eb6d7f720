import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { Client } from '#src/contract/client/client.ts';
import type { AgentEntry, AgentSession } from '#src/contract/wire/agent.ts';
import { useWhileSeen } from '../state/while-seen.ts';
import { Badge } from './badge.tsx';
import { Markdown } from './markdown.tsx';
import { clock, valueText } from './words.ts';

type Session = Omit<AgentSession, 'entries'>;

/**
 * Returns the conversation as its event stream describes it. A change of `again` makes a new connection to the stream.
 */
export function useConversation(client: Client, id: string, again = 0) {
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
              // A prompt that did not complete is sent once more, with its outcome. The second event replaces the first.
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
        // A closed conversation has no stream, so it is read instead.
        const closed = await client.agentSessions.get(id, { signal });
        error.value = undefined;
        session.value = closed;
        entries.value = closed.entries;
      } catch (reason) {
        if (!signal.aborted) error.value = reason;
        throw reason;
      }
    },
    [id, again],
  );
  return { session: session.value, entries: entries.value, draft: draft.value, error: error.value };
}

const OUTCOMES = {
  cancelled: 'cancelled',
  failed: 'failed',
  limit: 'stopped at a limit',
  stale: 'cut off when the server stopped',
} as const;

interface ConversationProps {
  readonly entries: readonly AgentEntry[];
  /** The text that the model is writing. */
  readonly draft: string;
  /** Shows a cell that a tool call has touched. */
  readonly cell?: ((cellId: string) => ComponentChildren) | undefined;
  /** Returns the name of the person who wrote a prompt, by its run; undefined while it is not known. */
  readonly authorOf?: ((runId: string) => string | undefined) | undefined;
}

/** The messages, reasoning and tool calls of a conversation. */
export function Conversation({ entries, draft, cell, authorOf }: ConversationProps) {
  return (
    <ol class="stack conversation">
      {entries.map((entry) => (
        <Entry key={entry.id} entry={entry} cell={cell} authorOf={authorOf} />
      ))}
      {draft !== '' && (
        <li class="cell message">
          <header>
            <b>Agent</b> <Badge state="thinking" />
          </header>
          <pre>{draft}</pre>
        </li>
      )}
    </ol>
  );
}

function Entry({
  entry: { role, content, runId, createdAt, outcome },
  cell,
  authorOf,
}: { readonly entry: AgentEntry } & Pick<ConversationProps, 'cell' | 'authorOf'>) {
  const author = role === 'user' && runId !== null ? authorOf?.(runId) : undefined;
  return (
    <li class={`cell message ${role}`}>
      <header>
        <b>{author ?? SPEAKERS[role]}</b> <time dateTime={createdAt}>{clock(createdAt)}</time>
        {outcome !== undefined && <em> {OUTCOMES[outcome]}</em>}
      </header>
      {content.map((part, i) => (
        <Part key={i} part={part} cell={cell} isOfAgent={role === 'assistant'} />
      ))}
    </li>
  );
}

const SPEAKERS = { user: 'Person', assistant: 'Agent', tool: 'Tool' } as const;

/** Returns a text, with a note if the event has only the beginning of the text. */
function withOmitted(text: string, { omittedChars }: { readonly omittedChars?: number }): string {
  return omittedChars === undefined ? text : `${text}\n… ${omittedChars} characters more`;
}

interface PartProps extends Pick<ConversationProps, 'cell'> {
  readonly part: AgentEntry['content'][number];
  readonly isOfAgent: boolean;
}

function Part({ part, cell, isOfAgent }: PartProps) {
  switch (part.type) {
    case 'text':
      if (isOfAgent) return <Markdown text={withOmitted(part.text, part)} />;
      return <pre>{withOmitted(part.text, part)}</pre>;
    case 'reasoning':
      return (
        <details>
          <summary>Reasoning</summary>
          <pre>{withOmitted(part.text, part)}</pre>
        </details>
      );
    case 'tool-call':
      return (
        <details open>
          <summary>
            calls <code>{part.name}</code>
          </summary>
          <pre>{withOmitted(valueText(part.input), part)}</pre>
        </details>
      );
    case 'tool-result':
      return (
        <>
          <details>
            <summary>
              <code>{part.name}</code> <Badge state={part.status} />
            </summary>
            <pre>{withOmitted(part.output, part)}</pre>
          </details>
          {cell !== undefined && part.touchedCells !== undefined && (
            <p class="touched">Cells: {part.touchedCells.map((cellId) => [cell(cellId), ' '])}</p>
          )}
        </>
      );
  }
}
