import type { Client } from '#src/client/client.ts';
import type { NotebookStreamEvent } from '#src/client/events.ts';
import type { Run } from '#src/client/runs.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';

export interface FollowedRun {
  readonly client: Client;
  readonly sessionId: string;
  /** Called when everything that happens from here on will be seen; answers the run to follow. */
  readonly begin: () => Promise<string>;
  readonly take: (event: NotebookStreamEvent, runId: string | undefined) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Gives every event of the session to `take` until the run is over. Resolves with its record. */
export async function followRun({ client, sessionId, begin, take, signal }: FollowedRun): Promise<Run> {
  let runId: string | undefined;
  for await (const event of client.notebookSessions.follow(sessionId, { signal })) {
    await take(event, runId);
    if (event.type === 'session.replayed') {
      if (runId === undefined) runId = await begin();
      // What happened during a reconnect, or before a run was followed, is not told again.
      if (isOver(await client.runs.get(runId, { signal }))) break;
    }
    if (event.type === 'run-status' && event.data.runId === runId && event.data.status !== 'running') break;
  }
  return client.runs.get(runId ?? (await begin()), { signal });
}

export function isOver(run: Run): boolean {
  return run.status !== 'running' || run.stale === true;
}

export function exitCodeOfRun({ status }: Run): ExitCode {
  if (status === 'completed') return EXIT.ok;
  return status === 'cancelled' ? EXIT.cancelled : EXIT.failed;
}
