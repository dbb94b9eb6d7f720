/** Follows an occurrence of a job until it is over, through all of its attempts and through restarts of the server. */
import { pause } from '#src/contract/client/abort.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Occurrence } from '#src/contract/wire/job.ts';
import { CommandFailure, EXIT, type ExitCode } from '../exit-code.ts';
import { reasonLine } from '../show/job.ts';
import type { ServerReturn } from './server-return.ts';

const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 2_000;
/** How long one request waits for the end of a run, in seconds. */
const WAIT_S = 20;

export interface FollowedOccurrence {
  readonly client: Client;
  readonly occurrence: Occurrence;
  /** Called with a line for people when the occurrence gets another state. */
  readonly say: (text: string) => void;
  readonly server: ServerReturn;
  readonly signal: AbortSignal;
}

/** Resolves with the occurrence once it is over. Throws `CommandFailure` when it is no longer stored. */
export async function followOccurrence({
  client,
  occurrence: first,
  say,
  server,
  signal,
}: FollowedOccurrence): Promise<Occurrence> {
  let told = '';
  for (let pauseMs = MIN_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    const occurrence = await server.attempt(() => occurrenceOf(client, first, signal), signal);
    if (occurrence.finishedAt !== null) return occurrence;
    const text = stateText(occurrence);
    if (text !== told) say(text);
    told = text;
    const { status, runId } = occurrence;
    if (status === 'running' && runId !== null)
      await server.attempt(() => client.runs.get(runId, { wait: WAIT_S, signal }), signal);
    await pause(pauseMs, signal);
  }
}

/** Returns the exit code that tells how an occurrence ended. */
export function exitCodeOfOccurrence({ status }: Occurrence): ExitCode {
  if (status === 'completed') return EXIT.ok;
  return status === 'cancelled' ? EXIT.cancelled : EXIT.failed;
}

function stateText({ id, status, attempts, runId, reason }: Occurrence): string {
  if (status === 'running') return `${runId ?? id} is running`;
  if (status !== 'backing-off') return `attempt ${attempts} of ${id} has begun`;
  return `attempt ${attempts} failed: ${reasonLine(reason) ?? 'the reason is unknown'} It is repeated after a pause.`;
}

/** Returns the present state of an occurrence, which is on the first page unless many instants have been skipped since. */
async function occurrenceOf(
  client: Client,
  { id, jobId }: Occurrence,
  signal: AbortSignal,
): Promise<Occurrence> {
  const found = client.jobs.eachOccurrence(jobId, { order: 'desc', limit: 20, signal });
  for await (const occurrence of found) if (occurrence.id === id) return occurrence;
  throw new CommandFailure(
    `The occurrence ${id} is no longer stored: a job keeps its last 1,000 occurrences. troupe runs list --metadata occurrence=${id} shows its run.`,
  );
}
