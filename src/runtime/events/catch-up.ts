/**
 * Brings a subscriber up to date with the current state. If the subscriber returns with a known id, it also gets the missed
 * events.
 *
 * The order is always snapshot, missed events, state, and the event that ends the opening. A client that rebuilds its state at
 * each snapshot skips the events marked as missed; a client that keeps its state after a snapshot marked as resumed takes the
 * marked events and skips the rest.
 *
 * Ids are `<epoch>-<seq>`. The frames of a state have longer ids. `<seq>.<n>` stands for a client that has received only a part
 * of the state and must get the whole state again. `<seq>.0.<n>` stands for a client that has seen everything before the state.
 */
import type { ChunkRing } from './chunk-ring.ts';
import {
  encodeEventFrame,
  type Frameable,
  frameOf,
  fromFrame,
  type LargeFrame,
  markMissed,
} from './frame.ts';

/** The approximate memory of an event of the state, without its texts, which the notebook or the conversation has anyway. */
const STATE_EVENT_BYTES = 450;

/** The frames that a subscriber gets before live frames. */
export interface Opening {
  readonly frames: Iterable<string | LargeFrame>;
  /** The memory that the frames hold for this subscriber until they have been sent. */
  readonly heldBytes: number;
}

export interface OpeningOptions<Event extends Frameable> {
  readonly ring: ChunkRing;
  readonly epoch: string;
  /** The event after which the state is complete. */
  readonly replayed: Event;
  /** The id of the last event that the subscriber has received; empty when the subscriber names none. */
  readonly lastEventId: string;
  /** The last event that is contained in the state. */
  readonly seq: number;
  /** The snapshot, then the events that rebuild the rest of the state. */
  readonly state: readonly Event[];
  /** The last event of a stream that has ended. */
  readonly closing: Event | undefined;
}

/** Returns the opening for a subscriber that joins now. Frames of the state are encoded on demand. */
export function openingOf<Event extends Frameable>(options: OpeningOptions<Event>): Opening {
  const { ring, epoch, lastEventId, closing } = options;
  const seq = closing === undefined ? seqOf(lastEventId, epoch) : undefined;
  const missed = seq === undefined ? undefined : chunksAfter(ring, epoch, seq);
  const stateBytes = options.state.length * STATE_EVENT_BYTES;
  if (seq === undefined || missed === undefined)
    return { frames: wholeState(options), heldBytes: stateBytes };
  const heldBytes = missed.reduce((sum, { byteLength }) => sum + byteLength, stateBytes);
  return { frames: resumedState(options, seq, missed), heldBytes };
}

function* wholeState<Event extends Frameable>({
  epoch,
  seq,
  replayed,
  state,
  closing,
}: OpeningOptions<Event>): Generator<string | LargeFrame> {
  const at = `${epoch}-${seq}`;
  let count = 0;
  for (const event of state) yield frameOf(`${at}.${++count}`, event);
  yield encodeEventFrame(at, replayed);
  if (closing !== undefined) yield encodeEventFrame(`${at}.${++count}`, closing);
}

function* resumedState<Event extends Frameable>(
  { epoch, seq, replayed, state }: OpeningOptions<Event>,
  lastSeq: number,
  missed: readonly Uint8Array[],
): Generator<string | LargeFrame> {
  const [snapshot, ...rest] = state;
  if (snapshot !== undefined) {
    const resumed: Frameable = Object.assign({}, snapshot, { resumed: true });
    yield frameOf(`${epoch}-${lastSeq}.0.1`, resumed);
  }
  for (const chunk of missed) yield* markMissed(chunk);
  let count = 1;
  for (const event of [...rest, replayed]) yield frameOf(`${epoch}-${seq}.0.${++count}`, event);
}

/** Returns the frames after `seq`, by chunk; undefined when the ring no longer has all these frames. */
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

/** Returns the event that an id names, if the subscriber has received everything up to it. */
function seqOf(id: string, epoch: string): number | undefined {
  if (!id.startsWith(`${epoch}-`)) return undefined;
  const match = /^(\d{1,15})(?:\.0\.\d{1,9})?$/.exec(id.slice(epoch.length + 1));
  return match === null ? undefined : Number(match[1]);
}
