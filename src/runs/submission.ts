import type { RunId } from '#src/core/ids.ts';

/** A run that was just submitted. */
export interface Submission {
  readonly runId: RunId;
  /** The id of the last event before the run: a stream that is continued from it begins with the run's first event. */
  readonly lastEventId: string;
  /** The JSON of the run, in parts. */
  readonly json: readonly Uint8Array[];
}

/** Returns the JSON with which a submission is answered: its own members, then those of the run. */
export function submissionJson({ runId, lastEventId, json }: Submission): Uint8Array {
  const [first, ...others] = json;
  if (first === undefined) throw new Error(`The run ${runId} has no JSON.`);
  const members = Buffer.from(`{"runId":"${runId}","lastEventId":"${lastEventId}",`);
  return Buffer.concat([members, first.subarray(1), ...others]);
}

/** Returns the submission that such JSON is the answer to; with an empty id of an event when an older release has made it. */
export function submissionOf(json: Uint8Array): Omit<Submission, 'json'> | undefined {
  const beginning = Buffer.from(json.buffer, json.byteOffset, Math.min(json.byteLength, 200)).toString(
    'utf8',
  );
  const [, runId, lastEventId = ''] =
    /^\{"runId":"([\w-]+)"(?:,"lastEventId":"([\w.-]*)")?/.exec(beginning) ?? [];
  return runId === undefined ? undefined : { runId: runId as RunId, lastEventId };
}
