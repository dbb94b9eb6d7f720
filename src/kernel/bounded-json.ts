import { findJsonExcess, type JsonBounds } from '#src/core/json-bounds.ts';
import { ShapeError } from './json-shape.ts';

const BOUNDS: JsonBounds = { maxDepth: 64, maxValues: 1_000_000, maxDigits: Number.POSITIVE_INFINITY };

/**
 * Parses JSON from a kernel, which notebook code may have written: with at most 64 levels and a million values, so that
 * recursive code can walk the result. Throws a `ShapeError`, which never quotes the input.
 */
export function parseBoundedJson(body: Buffer): unknown {
  const excess = findJsonExcess(body, BOUNDS);
  if (excess === 'depth') throw new ShapeError('a frame that is nested too deeply');
  if (excess !== undefined) throw new ShapeError('a frame of too many values');
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new ShapeError('a frame that is not JSON'); // the parser's own message quotes the input
  }
}
