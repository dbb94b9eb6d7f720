/** A run as it is served, and the forms in which it is stored. */
import type { RunKind, RunStatus } from '#machines/run.ts';
import type { Failure } from '#src/core/errors.ts';
import type { RunId, SessionId } from '#src/core/ids.ts';
import type { RunRecord } from '#storage/runs.ts';

/** A run with a larger record has a summary, so that lists without outputs need not read the record. */
const MAX_BYTES_WITHOUT_SUMMARY = 4096;

/** A run as the API returns it. */
export interface RunDocument {
  readonly id: RunId;
  readonly kind: RunKind;
  readonly sessionId: SessionId;
  readonly status: RunStatus;
  /** Whether an earlier server process left it running. Never stored: it is found when the run is read. */
  readonly stale?: true;
  readonly input: unknown;
  readonly output: unknown;
  readonly error: Failure | null;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
}

export function recordOf(run: RunDocument, trace: RunRecord['trace']): RunRecord {
  const { sessionId, status, kind } = run;
  const document = Buffer.from(JSON.stringify(run));
  return trace === undefined
    ? { sessionId, status, kind, document }
    : { sessionId, status, kind, trace, document };
}

/** Returns what lists without outputs show of a run that has ended; undefined when its record is small. */
export function summaryOf(run: RunDocument, { document }: RunRecord): Uint8Array | undefined {
  if (document.byteLength <= MAX_BYTES_WITHOUT_SUMMARY || run.output === null) return undefined;
  return Buffer.from(JSON.stringify({ ...run, output: null }));
}

export function withoutOutput(json: Uint8Array): Uint8Array {
  return Buffer.from(JSON.stringify({ ...parse(json), output: null }));
}

export function parse(json: Uint8Array): RunDocument {
  return JSON.parse(
    Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8'),
  ) as RunDocument;
}

/** Returns the record of a run as if its output had not been stored; undefined when it has none. */
export function trimmed(record: RunRecord): RunRecord | undefined {
  const run = parse(record.document);
  if (run.output === null) return undefined;
  const output = { ...Object(run.output), stored: false, parts: [] };
  return { ...recordOf({ ...run, output }, record.trace), isTrimmed: true };
}
