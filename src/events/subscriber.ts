import type { Opening } from './catch-up.ts';
import type { ChunkRing } from './chunk-ring.ts';
import type { EventSink, Relay } from './event-sink.ts';
import { type FramePiece, joinFrames, PIECE_BYTES } from './frame.ts';

/**
 * A subscriber that took bytes this recently, by the activity clock, is moving: slow perhaps, but not stalled. It takes them in lumps:
 * a connection that refused bytes takes the next ones when a piece has left, and TCP opens a window that was closed by a sixteenth of the
 * receiver's buffer. A stalled subscriber makes the producer wait for so long, once.
 */
const MOVING_WITHIN_MS = 2_000;
/**
 * After this many bytes a subscriber waits for the next turn of the event loop, because encoding and writing them takes some
 * milliseconds.
 */
const MAX_BYTES_A_TURN = 1024 * 1024;
const MOVING_LIMIT_FACTOR = 4;
const NOTHING = new Uint8Array();

/**
 * One subscriber's place in a stream: the rest of its opening, then an index into the ring that all share. While its
 * connection takes nothing it is only these few members, the rest of a frame, and the unsent bytes of the connection:
 * at most one piece, because a larger frame is passed on in pieces.
 */
export class Subscriber {
  readonly sink: EventSink;
  /** Whether it only observes. */
  readonly observes: boolean;
  /** Read once: the connection may be an object of uWebSockets.js, which is slow to say that it has none. */
  readonly relay: Relay | undefined;
  /** The next chunk of the ring to write. */
  next = 0;
  /** Whether the connection refuses bytes until it says that it is writable. */
  blocked = false;
  /** Whether it is blocked only until the next turn of the event loop. */
  isResting = false;
  #joined = false;
  #ahead: Iterator<FramePiece, undefined> | undefined;
  /** Whether the last piece of the opening that was taken is in the middle of a frame. */
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
   * Until then nothing is written to it. The opening is written before the ring and never counts as lag; a subscriber that has it
   * already joins without an opening.
   */
  join(next: number, opening?: Opening): void {
    this.next = next;
    this.#joined = true;
    if (opening === undefined) return;
    this.#ahead = joinFrames(opening.frames);
    this.#heldBytes = opening.heldBytes;
  }

  /** Whether everything there is was handed to the connection. */
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

  /** The bytes that were published and are still to be passed on. */
  lagBytes(ring: ChunkRing): number {
    if (!this.#joined) return 0;
    return ring.bytesFrom(this.next) + (this.#isRestShared ? (this.#rest?.byteLength ?? 0) : 0);
  }

  /** The memory for this subscriber alone: unsent bytes of its connection, its current frame, its opening. */
  get ownBytes(): number {
    return this.#heldBytes + this.#unsentBytes + (this.#isRestShared ? 0 : (this.#rest?.byteLength ?? 0));
  }

  /** Writes until the connection refuses, there is no more, or it is enough for this turn of the event loop. */
  pump(ring: ChunkRing): void {
    let room = MAX_BYTES_A_TURN;
    while (this.#joined && !this.blocked) {
      const piece = this.#nextPiece(ring);
      if (piece === undefined) return;
      this.write(piece);
      room -= piece.byteLength;
      if (room > 0 || this.blocked) continue;
      this.blocked = true;
      this.isResting = true;
    }
  }

  write(bytes: Uint8Array): void {
    if (this.sink.write(bytes)) return;
    this.blocked = true;
    this.#unsentBytes = bytes.byteLength;
    this.#hasMoved = true;
  }

  /** The connection has taken everything it was given, or the turn is over in which it was given enough. */
  unblock(): void {
    this.blocked = false;
    this.isResting = false;
    this.#unsentBytes = 0;
    this.#hasMoved = true;
  }

  /** Returns the next byte of the frame that is being written, which counts as written then; undefined between frames. */
  takeByte(): Uint8Array | undefined {
    const rest = this.#rest ?? (this.#isWithinFrame ? this.#takeAhead() : undefined);
    if (rest === undefined) return undefined;
    this.#rest = rest.byteLength > 1 ? rest.subarray(1) : undefined;
    return rest.subarray(0, 1);
  }

  /** Whether it took bytes lately. `nowMs` is read from the activity clock of its stream. */
  isMoving(nowMs: number): boolean {
    if (this.#hasMoved) this.#movedAtMs = nowMs;
    this.#hasMoved = false;
    return nowMs - this.#movedAtMs < MOVING_WITHIN_MS;
  }

  /** How far it may lag while it is moving, of a stream with this limit. */
  mostLagBytes(limitBytes: number): number {
    return limitBytes * MOVING_LIMIT_FACTOR;
  }

  /** Returns the next bytes to write, at most a piece; undefined when there are none. */
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
