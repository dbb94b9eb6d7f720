import type { Client } from '#src/contract/client/client.ts';
import type { AgentStreamEvent } from '#src/contract/wire/events.ts';
import type { Run } from '#src/contract/wire/run.ts';
import { CommandFailure } from '../exit-code.ts';
import { hasEnded, namingRun } from '../run/follow-run.ts';
import type { ServerReturn } from '../run/server-return.ts';

/** A prompt to submit, and where its events go. */
export interface FollowedPrompt {
  readonly client: Client;
  readonly sessionId: string;
  /** Submits the prompt and returns its run. Called once the stream is open, so that no event is missed. */
  readonly submit: () => Promise<string>;
  /**
   * Called with every event of the run, and with status events of the session during the run. Entries that a restarted server
   * sends again are left out.
   */
  readonly take: (event: AgentStreamEvent) => void;
  /** Waits for a server that stops while the prompt is followed. */
  readonly server: ServerReturn;
  readonly signal: AbortSignal;
}

/**
 * Submits a prompt, follows its run to the end, and returns the run. If the server stops, the function waits for its return. If
 * the server does not return, the failure names the run.
 */
export async function followPrompt(options: FollowedPrompt): Promise<Run> {
  const { client, sessionId, submit, take, server, signal } = options;
  let runId: string | undefined;
  const entries = new Set<string>();
  const isNew = (event: AgentStreamEvent) => {
    if (event.type !== 'agent-entry') return true;
    const isKnown = entries.has(event.data.id);
    entries.add(event.data.id);
    return !isKnown;
  };
  const read = (id: string) => server.attempt(() => client.runs.get(id, { signal }), signal);
  const follow = async () => {
    const onUnreachable = () => server.away();
    for await (const event of client.agentSessions.follow(sessionId, { signal, onUnreachable })) {
      server.back();
      if (event.type === 'session.replayed') {
        if (runId === undefined) runId = await submit();
        // If the run ended while the connection was lost, the stream does not repeat its end.
        else if (hasEnded(await read(runId))) break;
      } else if (runId !== undefined && (event.runId === runId || event.type === 'session.status')) {
        if (isNew(event)) take(event);
        if (event.type === 'run-status' && event.data.status !== 'running') break;
      }
    }
    if (runId === undefined) throw new CommandFailure(`The conversation ${sessionId} is closed.`);
    return await read(runId);
  };
  try {
    return await server.through(follow);
  } catch (error) {
    throw namingRun(error, runId);
  }
}
