import type { Opening } from './catch-up.ts';
import type { ChunkRing } from './chunk-ring.ts';
import type { EventSink, Relay } from './event-sink.ts';
import { type FramePiece, joinFrames, PIECE_BYTES } from './frame.ts';

/**
 * A subscriber that took bytes within this time of the activity clock is moving: it may be slow, but is not stalled. Bytes leave
 * in lumps, because a connection that refused bytes accepts more when a piece has left, and TCP reopens a closed window by a
 * sixteenth of the receiver's buffer. A stalled subscriber makes the producer wait this long, once.
 */
const MOVING_WITHIN_MS = 2_000;
/**
 * After this many bytes a subscriber continues in the next turn of the event loop, because encoding
 * and writing them takes some milliseconds.
 */
const MAX_BYTES_A_TURN = 1024 * 1024;
/**
 * When this many bytes were written to all subscribers of the process in a turn, each further subscriber gets only one piece in
 * that turn. Otherwise many subscribers at once, as after a restart, would occupy the event loop.
 */
const MAX_BYTES_OF_ALL = 4 * MAX_BYTES_A_TURN;
const MOVING_LIMIT_FACTOR = 4;
const NOTHING = new Uint8Array();

/** The rest of `MAX_BYTES_OF_ALL` in this turn. All streams of the process share it, as they share the event loop. */
let roomOfAll = MAX_BYTES_OF_ALL;

/** Subtracts a write from the room of this turn. */
function spend(bytes: number): void {
  if (roomOfAll === MAX_BYTES_OF_ALL)
    setImmediate(() => {
      roomOfAll = MAX_BYTES_OF_ALL;
    });
  roomOfAll -= bytes;
}

/**
 * One subscriber's place in a stream: the rest of its opening, then an index into the shared ring. While its connection takes no
 * bytes, a subscriber needs only these few members, the rest of a frame, and the unsent bytes of the connection. These are at
 * most one piece, because a larger frame is passed on in pieces.
 */
export class Subscriber {
  readonly sink: EventSink;
  /** Whether the subscriber only observes. */
  readonly observes: boolean;
  /** The relay of the sink. It is read once, because looking up a missing member of a uWebSockets.js object is slow. */
  readonly relay: Relay | undefined;
  /** The next chunk of the ring to write. */
  next = 0;
  /** Whether the connection refuses bytes until it reports that it is writable. */
  blocked = false;
  /** Whether the subscriber is blocked only until the next turn of the event loop. */
  isResting = false;
  #joined = false;
  #ahead: Iterator<FramePiece, undefined> | undefined;
  /** Whether the last taken piece of the opening ends in the middle of a frame. */
  #isWithinFrame = false;
  /** The unwritten part of a frame that is larger than a piece. */
  #rest: Uint8Array | undefined;
  #isRestShared = false;
  #unsentBytes = 0;
  #hasMoved = false;
  #heldBytes = 0;
  #movedAtMs = 0;

  constructor(sink: EventSink, observes: boolean) {
    this.sink = sink;
    this.observes = observes;
    this.relay = sink.relay;
  }

  /**
   * Begins with the opening, and continues with the chunk `next` of the ring. The opening never counts as lag. A subscriber that
   * already has its opening joins without one.
   */
  join(next: number, opening?: Opening): void {
    this.next = next;
    this.#joined = true;
    if (opening === undefined) return;
    this.#ahead = joinFrames(opening.frames);
    this.#heldBytes = opening.heldBytes;
  }

  /** Returns whether all available bytes were handed to the connection. */
  isCaughtUp(ring: ChunkRing): boolean {
    return (
      this.#joined && this.#ahead === undefined && this.#rest === undefined && this.next >= ring.nextIndex
    );
  }

  /** Yields the rest of the subscriber's current frame, in pieces; nothing between frames. */
  *restOfFrame(): Generator<Uint8Array> {
    let rest = this.#rest;
    for (; rest !== undefined && rest.byteLength > 0; rest = rest.subarray(PIECE_BYTES))
      yield rest.subarray(0, PIECE_BYTES);
    while (this.#isWithinFrame) yield this.#takeAhead() ?? NOTHING;
  }

  /** Returns how many published bytes are not passed on yet. */
  lagBytes(ring: ChunkRing): number {
    if (!this.#joined) return 0;
    return ring.bytesFrom(this.next) + (this.#isRestShared ? (this.#rest?.byteLength ?? 0) : 0);
  }

  /** The memory for this subscriber alone: unsent bytes of its connection, its current frame, its opening. */
  get ownBytes(): number {
    return this.#heldBytes + this.#unsentBytes + (this.#isRestShared ? 0 : (this.#rest?.byteLength ?? 0));
  }

  /**
   * Writes until the connection refuses bytes, no bytes are left, or the limit for this turn of the event loop is reached.
   */
  pump(ring: ChunkRing): void {
    const most = roomOfAll >= MAX_BYTES_A_TURN ? MAX_BYTES_A_TURN : PIECE_BYTES;
    let room = most;
    while (this.#joined && !this.blocked) {
      const piece = this.#nextPiece(ring);
      if (piece === undefined) break;
      this.write(piece);
      room -= piece.byteLength;
      if (room > 0 || this.blocked) continue;
      this.blocked = true;
      this.isResting = true;
    }
    if (most - room >= PIECE_BYTES) spend(most - room);
  }

  write(bytes: Uint8Array): void {
    if (this.sink.write(bytes)) return;
    this.blocked = true;
    this.#unsentBytes = bytes.byteLength;
    this.#hasMoved = true;
  }

  /**
   * Called when the connection has taken all its bytes, or when the next turn after a full one
   * begins.
   */
  unblock(): void {
    this.blocked = false;
    this.isResting = false;
    this.#unsentBytes = 0;
    this.#hasMoved = true;
  }

  /** Returns the next byte of the frame that is being written, and counts it as written; undefined between frames. */
  takeByte(): Uint8Array | undefined {
    const rest = this.#rest ?? (this.#isWithinFrame ? this.#takeAhead() : undefined);
    if (rest === undefined) return undefined;
    this.#rest = rest.byteLength > 1 ? rest.subarray(1) : undefined;
    return rest.subarray(0, 1);
  }

  /**
   * Returns whether the subscriber took bytes lately. `nowMs` is read from the activity clock of its stream.
   */
  isMoving(nowMs: number): boolean {
    if (this.#hasMoved) this.#movedAtMs = nowMs;
    this.#hasMoved = false;
    return nowMs - this.#movedAtMs < MOVING_WITHIN_MS;
  }

  /** Returns how many bytes the subscriber may lag while it is moving. `limitBytes` is the limit of the stream. */
  mostLagBytes(limitBytes: number): number {
    return limitBytes * MOVING_LIMIT_FACTOR;
  }

  /** Returns the next bytes to write, at most a piece; undefined when none are left. */
  #nextPiece(ring: ChunkRing): Uint8Array | undefined {
    const bytes = this.#rest ?? this.#takeAhead() ?? this.#takeShared(ring);
    if (bytes === undefined || bytes.byteLength <= PIECE_BYTES) {
      this.#rest = undefined;
      return bytes;
    }
    this.#rest = bytes.subarray(PIECE_BYTES);
    return bytes.subarray(0, PIECE_BYTES);
  }

  #takeAhead(): Uint8Array | undefined {
    const piece = this.#ahead?.next().value;
    this.#isWithinFrame = piece?.endsFrame === false;
    if (piece === undefined) {
      this.#ahead = undefined;
      this.#heldBytes = 0;
      return undefined;
    }
    this.#isRestShared = false;
    return piece.bytes;
  }

  #takeShared(ring: ChunkRing): Uint8Array | undefined {
    if (this.next >= ring.nextIndex) return undefined;
    this.#isRestShared = true;
    return ring.at(this.next++).bytes;
  }
}
