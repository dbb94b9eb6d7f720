import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { AgentEntry } from '#src/contract/wire/agent.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { NotebookPlace, NotebookPresence } from '#src/contract/wire/presence.ts';
import { Action } from '../parts/action.tsx';
import { Conversation, useConversation } from '../parts/conversation.tsx';
import { Problem } from '../parts/problem.tsx';
import { clock } from '../parts/words.ts';
import { BASE_URL, request } from '../state/server.ts';
import { clientOf } from './account.ts';

interface PanelProps {
  readonly notebookId: string;
  readonly place: NotebookPlace;
  readonly presence: NotebookPresence;
  readonly showCell: (cellId: string) => void;
  readonly close: () => void;
}

/**
 * The panel next to a notebook: the people in the notebook, the cells that each of them has changed, and a conversation with the
 * agent.
 */
export function NotebookPanel({ notebookId, place, presence, showCell, close }: PanelProps) {
  const { people, morePeople, changes } = presence;
  const labels = new Map(changes.flatMap(({ cells }) => cells.map(({ cellId, label }) => [cellId, label])));
  const cell = (cellId: string) => (
    <button type="button" class="link" onClick={() => showCell(cellId)}>
      {labels.get(cellId) || cellId}
    </button>
  );
  return (
    <aside aria-label="People and agent">
      <button type="button" class="quiet close" onClick={close}>
        Close
      </button>
      <section aria-label="People">
        <h2>People</h2>
        <ul>
          {people.map(({ userId, name, access }) => (
            <li key={userId}>
              {name}
              {userId === place.userId && ' (you)'}
              {access !== 'edit' && <small> looks on</small>}
            </li>
          ))}
          {morePeople > 0 && <li>and {morePeople} more</li>}
        </ul>
      </section>
      {changes.length > 0 && (
        <section aria-label="Changes">
          <h2>Changed cells</h2>
          <ul>
            {changes.map(({ userId, name, isAgent, at, cells }) => (
              <li key={`${isAgent} ${userId}`}>
                <b>{isAgent ? `Agent, asked by ${name}` : name}</b> <time dateTime={at}>{clock(at)}</time>
                <p class="touched">
                  {cells.map(({ cellId, label, isDeleted }) =>
                    isDeleted ? <del key={cellId}>{label || cellId}</del> : [cell(cellId), ' '],
                  )}
                </p>
              </li>
            ))}
          </ul>
        </section>
      )}
      {place.access === 'edit' && (
        <section aria-label="Agent">
          <h2>Agent</h2>
          <Agent notebookId={notebookId} place={place} presence={presence} cell={cell} />
        </section>
      )}
    </aside>
  );
}

type AgentProps = Pick<PanelProps, 'notebookId' | 'place' | 'presence'> & {
  readonly cell: NonNullable<Parameters<typeof Conversation>[0]['cell']>;
};

/**
 * The conversation, for a person who has signed in. The cookie of the notebook's page gives no access to the conversation.
 */
function Agent(props: AgentProps) {
  const isSignedIn = useSignal<boolean | undefined>(undefined);
  useEffect(() => {
    request(BASE_URL + pathOf('getMe', {})).then(
      ({ ok }) => {
        isSignedIn.value = ok;
      },
      () => {
        isSignedIn.value = false;
      },
    );
  }, []);
  if (isSignedIn.value === undefined) return null;
  if (isSignedIn.value) return <Chat {...props} client={clientOf(props.place.workspaceId)} />;
  const back = encodeURIComponent(new URL(location.href).pathname);
  return (
    <p>
      <a href={`${BASE_URL}/sign-in?to=${back}`}>Sign in</a> to talk with the agent of this notebook.
    </p>
  );
}

function Chat({ notebookId, place, presence, cell, client }: AgentProps & { readonly client: Client }) {
  const { agent } = presence;
  const { session, entries, draft, error } = useConversation(client, notebookId, agent === null ? 0 : 1);
  const authorOf = useAuthors(client, entries, presence);
  const refusal = useSignal<unknown>(undefined);
  const isSending = useSignal(false);
  const form = useRef<HTMLFormElement>(null);
  // The form scrolls to its last message, which people must read.
  useEffect(() => form.current?.scrollIntoView({ block: 'end' }), [entries.length]);
  const runId = session?.currentRunId ?? null;
  // A notebook has no conversation until somebody begins one.
  const isNew = error instanceof ApiError && error.code === 'not_found' && agent === null;
  const submit = async (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const sent = event.currentTarget;
    const prompt = String(new FormData(sent).get('prompt')).trim();
    if (prompt === '' || isSending.value) return;
    isSending.value = true;
    refusal.value = undefined;
    try {
      if (agent === null) await openAgent(client, notebookId);
      await client.agentSessions.prompt(notebookId, prompt);
      sent.reset();
    } catch (reason) {
      refusal.value = reason;
    }
    isSending.value = false;
  };
  if (agent !== null && agent.ownerId !== place.userId && error instanceof ApiError)
    return <p>{agent.ownerName} talks with the agent here, and can share the conversation with you.</p>;
  return (
    <>
      {error !== undefined && !isNew && <Problem error={error} />}
      <Conversation entries={entries} draft={draft} cell={cell} authorOf={authorOf} />
      {refusal.value !== undefined && <Problem error={refusal.value} />}
      {runId !== null && <Action label="Cancel the prompt" isDanger run={() => client.runs.cancel(runId)} />}
      <form ref={form} onSubmit={submit}>
        <textarea
          name="prompt"
          aria-label="Prompt"
          placeholder="Ask the agent, which can change and run cells"
          rows={3}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            event.currentTarget.form?.requestSubmit();
          }}
        />
        <button type="submit" class="primary" disabled={isSending.value || runId !== null}>
          Send
        </button>
      </form>
    </>
  );
}

/** How many of the last prompts are shown with their authors. Each author takes a request. */
const MAX_NAMED = 30;

/** Returns a function that returns the name of a prompt's author. Several people may prompt in a shared conversation. */
function useAuthors(client: Client, entries: readonly AgentEntry[], { people, agent }: NotebookPresence) {
  const authors = useSignal<ReadonlyMap<string, string>>(new Map());
  const prompts = entries.flatMap(({ role, runId }) => (role === 'user' && runId !== null ? [runId] : []));
  const unknown = prompts.slice(-MAX_NAMED).find((runId) => !authors.value.has(runId));
  useEffect(() => {
    if (unknown === undefined) return;
    const take = (userId: string) => {
      authors.value = new Map([...authors.value, [unknown, userId]]);
    };
    client.runs.get(unknown).then(
      ({ createdBy = '' }) => take(createdBy),
      () => take(''), // the run was deleted, or this person may not read it
    );
  }, [unknown]);
  return (runId: string): string | undefined => {
    const userId = authors.value.get(runId);
    if (userId === undefined || userId === '') return undefined;
    if (userId === agent?.ownerId) return agent.ownerName;
    return people.find((person) => person.userId === userId)?.name ?? userId;
  };
}

/** Opens the conversation of the notebook in the environment of its session. */
async function openAgent(client: Client, notebookId: string): Promise<void> {
  const { environmentId } = await client.notebookSessions.get(notebookId);
  if (environmentId === null) throw new Error('The session of the notebook is closed. Load this page again.');
  await client.agentSessions.open({ environmentId, notebookSessionId: notebookId });
}
