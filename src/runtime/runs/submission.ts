import { invariant } from '#src/base/errors/invariant.ts';
import type { RunId } from '#src/base/ids.ts';
import { recordMemory } from '#storage/record-memory.ts';

/** A run that was just submitted. */
export interface Submission {
  readonly runId: RunId;
  /**
   * The id of the last event before the run. A stream that continues from it begins with the run's
   * first event.
   */
  readonly lastEventId: string;
  /** The JSON of the run, in parts. */
  readonly json: readonly Uint8Array[];
}

/** Returns the JSON of the response to a submission: the members of the submission, then the members of the run. */
export function submissionJson({ runId, lastEventId, json }: Submission): Uint8Array {
  const [first, ...others] = json;
  invariant(first !== undefined, 'A submitted run has JSON.', runId);
  const members = Buffer.from(`{"runId":"${runId}","lastEventId":"${lastEventId}",`);
  const parts = [members, first.subarray(1), ...others];
  let bytes = 0;
  for (const { byteLength } of parts) bytes += byteLength;
  const answer = recordMemory(bytes);
  let at = 0;
  for (const part of parts) {
    answer.set(part, at);
    at += part.byteLength;
  }
  return answer;
}

/** Returns the submission from the JSON of its response; undefined when the JSON is not a submission. */
export function submissionOf(json: Uint8Array): Omit<Submission, 'json'> | undefined {
  const beginning = Buffer.from(json.buffer, json.byteOffset, Math.min(json.byteLength, 200)).toString(
    'utf8',
  );
  const [, runId, lastEventId] = /^\{"runId":"([\w-]+)","lastEventId":"([\w.-]*)"/.exec(beginning) ?? [];
  return runId === undefined || lastEventId === undefined
    ? undefined
    : { runId: runId as RunId, lastEventId };
}
