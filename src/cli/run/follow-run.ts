import type { Client } from '#src/client/client.ts';
import type { NotebookStreamEvent } from '#src/wire/events.ts';
import type { Run } from '#src/wire/run.ts';
import { CommandFailure, EXIT, type ExitCode } from '../exit-code.ts';

/** A run to follow, and where its events go. */
export interface FollowedRun {
  readonly client: Client;
  readonly sessionId: string;
  /** A submitted run, or a function that submits one. It is called once the stream is open, so that no event is missed. */
  readonly run: string | (() => Promise<string>);
  readonly take: (event: NotebookStreamEvent, runId: string | undefined) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Passes every event of the session to `take` until the run has ended. Returns the run. */
export async function followRun({ client, sessionId, run, take, signal }: FollowedRun): Promise<Run> {
  let runId = typeof run === 'string' ? run : undefined;
  for await (const event of client.notebookSessions.follow(sessionId, { signal })) {
    await take(event, runId);
    if (event.type === 'session.replayed') {
      if (runId === undefined && typeof run !== 'string') runId = await run();
      // If the run ended before this, or while the connection was lost, the stream does not repeat its end.
      else if (runId !== undefined && isOver(await client.runs.get(runId, { signal }))) break;
    }
    if (event.type === 'run-status' && event.data.runId === runId && event.data.status !== 'running') break;
  }
  if (runId === undefined)
    throw new CommandFailure(`The session ${sessionId} was closed before the run began.`);
  return client.runs.get(runId, { signal });
}

/** Returns whether nothing more will happen in the run. */
export function isOver(run: Run): boolean {
  return run.status !== 'running' || run.stale === true;
}

/** Returns the exit code that tells how the run ended. */
export function exitCodeOfRun({ status }: Run): ExitCode {
  if (status === 'completed') return EXIT.ok;
  return status === 'cancelled' ? EXIT.cancelled : EXIT.failed;
}
