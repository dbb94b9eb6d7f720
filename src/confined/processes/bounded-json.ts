import { parseJson } from '#src/base/json/json-parse.ts';
import {
  findJsonExcess,
  type JsonBounds,
  type JsonExcess,
  JsonScan,
  MAX_MEMBERS,
} from '#src/base/json/json-scan.ts';
import { ShapeError } from './json-shape.ts';

/** A kernel leaves out what exceeds these limits: `LIMITS` of `src/confined/python/frames.py` are the same. */
const BOUNDS: JsonBounds = {
  maxDepth: 64,
  maxValues: 1_000_000,
  maxMembers: MAX_MEMBERS,
  maxDigits: Number.POSITIVE_INFINITY,
  mayHaveLargeNames: true,
};

/**
 * Parses JSON from a kernel, which notebook code may have written. At most 64 levels, a million
 * values and `MAX_MEMBERS` members of an object are allowed, so that recursive code can walk the
 * result. Throws a `ShapeError`, which never quotes the input.
 */
export function parseBoundedJson(body: Buffer): unknown {
  const excess = findJsonExcess(body, BOUNDS);
  if (excess !== undefined) throw excessive(excess);
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw notJson();
  }
}

/** Parses `body` like `parseBoundedJson`, in steps of up to a millisecond. `body` must not change meanwhile. */
export function* parseLargeBoundedJson(body: Buffer): Generator<undefined, unknown> {
  const scan = new JsonScan(body, BOUNDS);
  while (!scan.advance()) yield;
  if (scan.excess !== undefined) throw excessive(scan.excess);
  try {
    return yield* parseJson(body, scan);
  } catch {
    throw notJson();
  }
}

function excessive(excess: JsonExcess): ShapeError {
  if (excess === 'depth') return new ShapeError('a frame that is nested too deeply');
  if (excess === 'members') return new ShapeError('a frame with an object of too many members');
  return new ShapeError('a frame of too many values');
}

/** The parser's own message quotes the input. */
function notJson(): ShapeError {
  return new ShapeError('a frame that is not JSON');
}
