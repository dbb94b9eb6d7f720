/** A run in the form that the API returns, and its stored forms. */

import { atOnce, MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import type { Failure } from '#src/base/errors/errors.ts';
import type { RunId, SessionId } from '#src/base/ids.ts';
import { EncodedJson, isShortJson, writeJson } from '#src/base/json/json-write.ts';
import type { RunKind, RunStatus } from '#src/contract/wire/run.ts';
import { type EncodedRecord, encodeRecord, encodeRecordOfParts } from '#storage/codec.ts';
import { type RunRecord, runRecords } from '#storage/records/runs.ts';

/**
 * A run with a larger record has a summary, so that lists without outputs need not read the record.
 */
const MAX_BYTES_WITHOUT_SUMMARY = 4096;
const NO_BYTES = new Uint8Array();
const NULL = Buffer.from('null');
const STALE_END = Buffer.from(',"stale":true}');
const OMITTED_END = Buffer.from(',"outputOmitted":true}');

/** A run as the API returns it. */
export interface RunDocument {
  readonly id: RunId;
  readonly kind: RunKind;
  readonly sessionId: SessionId;
  readonly status: RunStatus;
  /** Whether an earlier server process left the run running. This member is never stored; it is determined when the run is read. */
  readonly stale?: true;
  readonly input: unknown;
  readonly output: unknown;
  readonly error: Failure | null;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  /** The user who submitted the run. */
  readonly createdBy?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Returns the run with its input encoded if that is long, so that it is encoded only once. */
export function withEncodedInput(run: RunDocument): RunDocument {
  if (isShortJson(run.input, MAX_SIZE_AT_ONCE)) return run;
  return { ...run, input: new EncodedJson(atOnce(writeJson(run.input))) };
}

/** A stored run. */
interface EncodedRun {
  /** The JSON of the run, in parts. */
  readonly parts: readonly Uint8Array[];
  readonly record: EncodedRecord<RunRecord>;
  /**
   * The form of an ended run in lists without outputs; undefined when that form can be made without
   * parsing the record.
   */
  readonly summary: Uint8Array | undefined;
}

/**
 * The members that are stored with a run but not served. `owner` is the worker with the run, in a server of several workers.
 */
type RunFacts = { readonly [Name in 'trace' | 'owner' | 'isTrimmed']?: RunRecord[Name] | undefined };

export function encodeRun(run: RunDocument, { trace, owner, isTrimmed }: RunFacts): EncodedRun {
  const { sessionId, status, kind } = run;
  const isInputLarge = run.input instanceof EncodedJson;
  // Only input and output may be large.
  const parts = run.output === null && !isInputLarge ? [Buffer.from(JSON.stringify(run))] : partsOf(run);
  const [first = NO_BYTES, ...others] = parts;
  const length = others.reduce((sum, { byteLength }) => sum + byteLength, first.byteLength);
  const fields: RunRecord = {
    sessionId,
    status,
    kind,
    ...(trace === undefined ? {} : { trace }),
    ...(owner === undefined ? {} : { owner }),
    ...(isTrimmed === undefined ? {} : { isTrimmed }),
    ...(isInputLarge ? { places: placesIn(length, run) } : {}),
    document: first,
  };
  const bytes =
    others.length === 0
      ? encodeRecord(runRecords, fields)
      : atOnce(encodeRecordOfParts(runRecords, fields, 'document', parts));
  const hasSummary = length > MAX_BYTES_WITHOUT_SUMMARY && run.output !== null && !isInputLarge;
  const summary = hasSummary ? Buffer.concat(partsOf({ ...run, output: null })) : undefined;
  return { parts, record: { kind: runRecords, bytes }, summary };
}

/** Returns the places of the input and the output in the JSON of a run, from the lengths of its other parts. */
function placesIn(length: number, run: RunDocument): NonNullable<RunRecord['places']> {
  const { id, kind, sessionId, status, error, createdAt, startedAt, finishedAt, createdBy, metadata } = run;
  const lengthOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
  const inputStart = lengthOf({ id, kind, sessionId, status }) + ',"input":'.length - 1;
  const outputEnd = length - lengthOf({ error, createdAt, startedAt, finishedAt, createdBy, metadata });
  const outputStart = outputEnd - lengthOf(run.output);
  return { input: [inputStart, outputStart - ',"output":'.length], output: [outputStart, outputEnd] };
}

/** The JSON of a run, and the places of its input and output if they are known. */
type StoredRun = Pick<RunRecord, 'document' | 'places'>;

/** Returns the JSON of a run without its output, with the mark of `asOmitted`. */
export function withoutOutput({ document, places }: StoredRun): Uint8Array {
  if (places === undefined) return asOmitted(Buffer.concat(partsOf({ ...parse(document), output: null })));
  const [start, end] = places.output;
  return Buffer.concat([document.subarray(0, start), NULL, document.subarray(end, -1), OMITTED_END]);
}

/** Returns the JSON of a run with this output. The run must have no output. */
export function withOutput({ document, places }: StoredRun, output: unknown): Uint8Array {
  if (places === undefined) return Buffer.concat(partsOf({ ...parse(document), output }));
  const [start, end] = places.output;
  return Buffer.concat([document.subarray(0, start), ...partsOf(output), document.subarray(end)]);
}

/** Returns a run. A run with a large input is returned without input and output. */
export function parseEssentials({ document, places }: StoredRun): RunDocument {
  if (places === undefined) return parse(document);
  const { input, output } = places;
  const around = [
    document.subarray(0, input[0]),
    NULL,
    document.subarray(input[1], output[0]),
    NULL,
    document.subarray(output[1]),
  ];
  return parse(Buffer.concat(around));
}

/** Returns the JSON of a run with the mark that an earlier server process left it running. */
export function asStale(document: Uint8Array): Uint8Array {
  return Buffer.concat([document.subarray(0, -1), STALE_END]);
}

/**
 * Returns the JSON of a run without its output, and with the mark that the output was left out
 * rather than missing.
 */
export function asOmitted(document: Uint8Array): Uint8Array {
  return Buffer.concat([document.subarray(0, -1), OMITTED_END]);
}

function partsOf(value: unknown): Uint8Array[] {
  return isShortJson(value, MAX_SIZE_AT_ONCE)
    ? [Buffer.from(JSON.stringify(value))]
    : atOnce(writeJson(value));
}

export function parse(json: Uint8Array): RunDocument {
  return JSON.parse(
    Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8'),
  ) as RunDocument;
}

/** Returns the record of a run as if its output had not been stored; undefined when the run has no output. */
export function trimmed(record: RunRecord): EncodedRecord<RunRecord> | undefined {
  const run = parse(record.document);
  if (run.output === null) return undefined;
  const output = { ...Object(run.output), stored: false, parts: [] };
  return encodeRun(withEncodedInput({ ...run, output }), { trace: record.trace, isTrimmed: true }).record;
}
