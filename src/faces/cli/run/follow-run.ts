import type { Client } from '#src/contract/client/client.ts';
import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';
import type { Run } from '#src/contract/wire/run.ts';
import { CommandFailure, EXIT, type ExitCode } from '../exit-code.ts';
import { isServerAway, type ServerReturn } from './server-return.ts';

/** A run to follow, and where its events go. */
export interface FollowedRun {
  readonly client: Client;
  readonly sessionId: string;
  /**
   * The id of a submitted run, or a function that submits a run. The function is called once the stream is open, so that no event
   * is missed.
   */
  readonly run: string | (() => Promise<string>);
  readonly take: (event: NotebookStreamEvent, runId: string | undefined) => Promise<void>;
  /** Waits for a server that stops while the run is followed. */
  readonly server: ServerReturn;
  readonly signal: AbortSignal;
}

/**
 * Passes every event of the session to `take` until the run has ended. Returns the run. If the server stops, the function waits
 * for its return. If the server does not return, the failure names the run.
 */
export async function followRun({ client, sessionId, run, take, server, signal }: FollowedRun): Promise<Run> {
  let runId = typeof run === 'string' ? run : undefined;
  const read = (id: string) => server.attempt(() => client.runs.get(id, { signal }), signal);
  const follow = async () => {
    const onUnreachable = () => server.away();
    for await (const event of client.notebookSessions.follow(sessionId, { signal, onUnreachable })) {
      server.back();
      await take(event, runId);
      if (event.type === 'session.replayed') {
        if (runId === undefined && typeof run !== 'string') runId = await run();
        // If the run ended before the stream began, or while the connection was lost, the stream does not repeat its end.
        else if (runId !== undefined && hasEnded(await read(runId))) break;
      }
      if (event.type === 'run-status' && event.data.runId === runId && event.data.status !== 'running') break;
    }
    if (runId === undefined)
      throw new CommandFailure(`The session ${sessionId} was closed before the run began.`);
    return await read(runId);
  };
  try {
    return await server.through(follow);
  } catch (error) {
    throw namingRun(error, runId);
  }
}

/** Returns the failure of a command that follows a run. If the server did not return, the message says how to learn how the run ended. */
export function namingRun(error: unknown, runId: string | undefined): unknown {
  if (runId === undefined || !isServerAway(error)) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new CommandFailure(
    `${message} Once the server is back, troupe runs show ${runId} tells how the run ended.`,
    EXIT.unreachable,
  );
}

/** Returns whether the run has ended. */
export function hasEnded(run: Run): boolean {
  return run.status !== 'running' || run.stale === true;
}

/** Returns the exit code that tells how the run ended. */
export function exitCodeOfRun({ status }: Run): ExitCode {
  if (status === 'completed') return EXIT.ok;
  return status === 'cancelled' ? EXIT.cancelled : EXIT.failed;
}
