import type { Client } from '#src/client/client.ts';
import type { NotebookStreamEvent } from '#src/client/events.ts';
import type { Run } from '#src/client/runs.ts';
import { CommandFailure, EXIT, type ExitCode } from '../exit-code.ts';

export interface FollowedRun {
  readonly client: Client;
  readonly sessionId: string;
  /** A run that has been submitted already; or what submits one, called when everything it does will be seen. */
  readonly run: string | (() => Promise<string>);
  readonly take: (event: NotebookStreamEvent, runId: string | undefined) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Gives every event of the session to `take` until the run is over. Resolves with its record. */
export async function followRun({ client, sessionId, run, take, signal }: FollowedRun): Promise<Run> {
  let runId = typeof run === 'string' ? run : undefined;
  for await (const event of client.notebookSessions.follow(sessionId, { signal })) {
    await take(event, runId);
    if (event.type === 'session.replayed') {
      if (runId === undefined && typeof run !== 'string') runId = await run();
      // Its end, if it came before this or while the connection was lost, is not told again.
      else if (runId !== undefined && isOver(await client.runs.get(runId, { signal }))) break;
    }
    if (event.type === 'run-status' && event.data.runId === runId && event.data.status !== 'running') break;
  }
  if (runId === undefined)
    throw new CommandFailure(`The session ${sessionId} was closed before the run began.`);
  return client.runs.get(runId, { signal });
}

export function isOver(run: Run): boolean {
  return run.status !== 'running' || run.stale === true;
}

export function exitCodeOfRun({ status }: Run): ExitCode {
  if (status === 'completed') return EXIT.ok;
  return status === 'cancelled' ? EXIT.cancelled : EXIT.failed;
}
