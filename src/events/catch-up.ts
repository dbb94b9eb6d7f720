/**
 * How a subscriber gets to the present: by the current state and, when it comes back with an id that is known here, by
 * what it has missed.
 *
 * The order is always snapshot, what was missed, state, `session.replayed`. Whoever rebuilds its state at each snapshot
 * skips what is marked as missed; whoever goes on with what it has, after a snapshot that is marked as resumed, takes
 * what is marked and skips the rest.
 *
 * Ids are `<epoch>-<seq>`. The frames of a state have longer ones: `<seq>.<n>` when who has seen only some of the state
 * must get all of it, and `<seq>.0.<n>` when everything before the state was seen.
 */
import type { Envelope } from '#src/wire/events.ts';
import type { ChunkRing } from './chunk-ring.ts';
import { encodeFrame, fromFrame, markMissed } from './frame.ts';

/** What a subscriber gets before what is live. */
export interface Opening {
  /** Its bytes, as frames. */
  readonly frames: Iterable<string>;
  /** What the frames keep in memory for this subscriber until they have been sent. */
  readonly heldBytes: number;
}

export interface OpeningOptions {
  readonly ring: ChunkRing;
  readonly epoch: string;
  readonly sessionId: string;
  /** The id of the last event that the subscriber has received; empty when there is none. */
  readonly lastEventId: string;
  /** The event up to which the state tells everything. */
  readonly seq: number;
  /** The snapshot, then what rebuilds the rest. */
  readonly state: readonly Envelope[];
  /** The last event of a stream that has ended. */
  readonly closing: Envelope | undefined;
}

/** Returns what a subscriber gets that joins now. Frames of the state are encoded as they are asked for. */
export function openingOf(options: OpeningOptions): Opening {
  const { ring, epoch, lastEventId, closing } = options;
  const seq = closing === undefined ? seqOf(lastEventId, epoch) : undefined;
  const missed = seq === undefined ? undefined : chunksAfter(ring, epoch, seq);
  if (seq === undefined || missed === undefined) return { frames: wholeState(options), heldBytes: 0 };
  const heldBytes = missed.reduce((sum, { byteLength }) => sum + byteLength, 0);
  return { frames: resumedState(options, seq, missed), heldBytes };
}

function* wholeState({ epoch, seq, sessionId, state, closing }: OpeningOptions): Generator<string> {
  const at = `${epoch}-${seq}`;
  let count = 0;
  for (const envelope of state) yield encodeFrame(`${at}.${++count}`, envelope);
  yield encodeFrame(at, replayed(sessionId));
  if (closing !== undefined) yield encodeFrame(`${at}.${++count}`, closing);
}

function* resumedState(
  { epoch, seq, sessionId, state }: OpeningOptions,
  lastSeq: number,
  missed: readonly Uint8Array[],
): Generator<string> {
  const [snapshot, ...rest] = state;
  if (snapshot !== undefined) yield encodeFrame(`${epoch}-${lastSeq}.0.1`, { ...snapshot, resumed: true });
  for (const chunk of missed) yield* markMissed(chunk);
  let count = 1;
  for (const envelope of [...rest, replayed(sessionId)]) {
    yield encodeFrame(`${epoch}-${seq}.0.${++count}`, envelope);
  }
}

/** Returns the frames after `seq`, by chunk; undefined when some of them are no longer here. */
function chunksAfter(ring: ChunkRing, epoch: string, seq: number): Uint8Array[] | undefined {
  const first = ring.indexAfter(seq);
  if (first === undefined) return undefined;
  const chunks: Uint8Array[] = [];
  for (let index = first; index < ring.nextIndex; index++) {
    const { bytes, firstSeq } = ring.at(index);
    const rest = index === first && firstSeq <= seq ? fromFrame(bytes, `${epoch}-${seq + 1}`) : bytes;
    if (rest === undefined) return undefined;
    chunks.push(rest);
  }
  return chunks;
}

/** Returns the event that an id names if everything up to it was seen. */
function seqOf(id: string, epoch: string): number | undefined {
  if (!id.startsWith(`${epoch}-`)) return undefined;
  const match = /^(\d{1,15})(?:\.0\.\d{1,9})?$/.exec(id.slice(epoch.length + 1));
  return match === null ? undefined : Number(match[1]);
}

function replayed(sessionId: string): Envelope {
  return { type: 'session.replayed', sessionId, data: {} };
}
