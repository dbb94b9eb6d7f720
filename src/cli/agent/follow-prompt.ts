import type { Client } from '#src/client/client.ts';
import type { AgentStreamEvent } from '#src/client/events.ts';
import type { Run } from '#src/client/runs.ts';
import { CommandFailure } from '../exit-code.ts';
import { isOver } from '../run/follow-run.ts';

export interface FollowedPrompt {
  readonly client: Client;
  readonly sessionId: string;
  /** Submits the prompt; called when everything that comes of it will be seen. */
  readonly submit: () => Promise<string>;
  /** Given every event of the run, and those of the session while it runs. */
  readonly take: (event: AgentStreamEvent) => void;
  readonly signal: AbortSignal;
}

/** Follows one prompt until its run is over. Resolves with its record. */
export async function followPrompt(options: FollowedPrompt): Promise<Run> {
  const { client, sessionId, submit, take, signal } = options;
  let runId: string | undefined;
  for await (const event of client.agentSessions.follow(sessionId, { signal })) {
    if (event.type === 'session.replayed') {
      if (runId === undefined) runId = await submit();
      // Its end, if it came while the connection was lost, is not told again.
      else if (isOver(await client.runs.get(runId, { signal }))) break;
    } else if (runId !== undefined && (event.runId === runId || event.type === 'session.status')) {
      take(event);
      if (event.type === 'run-status' && event.data.status !== 'running') break;
    }
  }
  if (runId === undefined) throw new CommandFailure(`The conversation ${sessionId} is closed.`);
  return client.runs.get(runId, { signal });
}
