/**
 * Parses responses of data warehouses. They are not trusted: some hundred kilobytes of compressed
 * `[],[],…` would otherwise become gigabytes of heap. Large pages are parsed in slices of the event
 * loop.
 */

import { atOnce, inSlices } from '#src/base/async/slices.ts';
import { parseJson } from '#src/base/json/json-parse.ts';
import { type JsonBounds, JsonScan, MAX_MEMBERS, MAX_PIECE_BYTES } from '#src/base/json/json-scan.ts';
import { DatasourceFailure } from '../../failure.ts';
import { markLongIntegers } from './long-integers.ts';

const BOUNDS: JsonBounds = {
  maxDepth: 128,
  maxValues: 8_000_000,
  maxMembers: MAX_MEMBERS,
  maxDigits: 1000,
  mayHaveLargeNames: true,
};
/** The message names the limit, because a map or a JSON object of an honest database may exceed it. */
const TOO_WIDE = `A value of the result is a map or an object with more than ${MAX_MEMBERS} members. Select its entries as rows, or as text.`;

export interface PageOptions {
  /** Whether integers that a double cannot hold are marked, as `markLongIntegers` does. */
  readonly marksLongIntegers?: boolean;
}

/** Returns the value of the JSON, or `undefined` when it is not JSON. Rejects with `too_much` beyond the bounds. */
export function parsePage(json: Buffer, options: PageOptions): Promise<unknown> {
  const steps = parsing(json, options);
  return json.length > MAX_PIECE_BYTES ? inSlices(steps) : Promise.resolve().then(() => atOnce(steps));
}

function* parsing(received: Buffer, { marksLongIntegers }: PageOptions): Generator<undefined, unknown> {
  const json = marksLongIntegers === true ? yield* markLongIntegers(received) : received;
  const scan = new JsonScan(json, BOUNDS);
  while (!scan.advance()) yield;
  if (scan.excess === 'members') throw new DatasourceFailure('too_much', TOO_WIDE);
  if (scan.excess !== undefined) throw new DatasourceFailure('too_much');
  try {
    return yield* parseJson(json, scan);
  } catch {
    return undefined;
  }
}
