/** How a subscriber gets to the present: from where it was, or from the current state. */

import type { Envelope } from '#src/wire/events.ts';
import type { ChunkRing } from './chunk-ring.ts';
import { encodeFrame, fromFrame } from './frame.ts';

export interface Place {
  /** What is left of the chunk in which the subscriber was. */
  readonly rest: Iterator<Uint8Array, undefined>;
  /** The chunk it goes on with. */
  readonly index: number;
}

/** Where a subscriber goes on that has seen everything up to this id; undefined when that is not known here. */
export function placeAfter(ring: ChunkRing, epoch: string, lastEventId: string): Place | undefined {
  const seq = seqOf(lastEventId, epoch);
  if (seq === undefined) return undefined;
  const index = ring.indexAfter(seq);
  if (index === undefined) return undefined;
  const isWithinChunk = index < ring.nextIndex && ring.at(index).firstSeq <= seq;
  if (!isWithinChunk) return { rest: pieces(), index };
  const rest = fromFrame(ring.at(index).bytes, `${epoch}-${seq + 1}`);
  return rest === undefined ? undefined : { rest: pieces(rest), index: index + 1 };
}

/**
 * The frames of the current state, encoded as they are asked for, so that a slow reader costs no copy of it. Their ids
 * have a third part: who has seen only some of the state must get all of it. The id of `replayed` says where to go on.
 */
export function* stateFrames(
  at: string,
  state: readonly Envelope[],
  replayed: Envelope,
  closing: Envelope | undefined,
): Generator<string> {
  let count = 0;
  for (const envelope of state) yield encodeFrame(`${at}.${++count}`, envelope);
  yield encodeFrame(at, replayed);
  if (closing !== undefined) yield encodeFrame(`${at}.${++count}`, closing);
}

function seqOf(id: string, epoch: string): number | undefined {
  if (!id.startsWith(`${epoch}-`)) return undefined;
  const digits = id.slice(epoch.length + 1);
  return /^\d{1,15}$/.test(digits) ? Number(digits) : undefined;
}

function pieces(...bytes: Uint8Array[]): Iterator<Uint8Array, undefined> {
  return bytes.values();
}
