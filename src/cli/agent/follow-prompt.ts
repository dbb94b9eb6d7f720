import type { Client } from '#src/client/client.ts';
import type { AgentStreamEvent } from '#src/wire/events.ts';
import type { Run } from '#src/wire/run.ts';
import { CommandFailure } from '../exit-code.ts';
import { isOver } from '../run/follow-run.ts';

/** A prompt to submit, and where its events go. */
export interface FollowedPrompt {
  readonly client: Client;
  readonly sessionId: string;
  /** Submits the prompt and returns its run. Called once the stream is open, so that no event is missed. */
  readonly submit: () => Promise<string>;
  /** Called with every event of the run, and with status events of the session while the run lasts. */
  readonly take: (event: AgentStreamEvent) => void;
  readonly signal: AbortSignal;
}

/** Submits a prompt and follows it until its run has ended. Returns the run. */
export async function followPrompt(options: FollowedPrompt): Promise<Run> {
  const { client, sessionId, submit, take, signal } = options;
  let runId: string | undefined;
  for await (const event of client.agentSessions.follow(sessionId, { signal })) {
    if (event.type === 'session.replayed') {
      if (runId === undefined) runId = await submit();
      // If the run ended while the connection was lost, the stream does not repeat its end.
      else if (isOver(await client.runs.get(runId, { signal }))) break;
    } else if (runId !== undefined && (event.runId === runId || event.type === 'session.status')) {
      take(event);
      if (event.type === 'run-status' && event.data.status !== 'running') break;
    }
  }
  if (runId === undefined) throw new CommandFailure(`The conversation ${sessionId} is closed.`);
  return client.runs.get(runId, { signal });
}
