/**
 * A stream of events that are published to its current subscribers.
 *
 * A frame is encoded once. Frames published in one turn leave as one chunk: one write for each subscriber. Chunks are kept in a ring that all subscribers share. For a subscriber whose connection refuses bytes, only its place in the ring is kept. This file makes the chunks; audience.ts writes them to subscribers.
 *
 * Invariants:
 * 1. Subscribers see events in the order of `publish`. An event that waits for its commit holds all after it.
 * 2. Nothing uncommitted is seen, nothing is missed or seen twice: a snapshot that is taken while events are held is
 *    sent after them and replaces them; later events follow.
 * 3. A stalled subscriber is cut off at the limit; it holds neither the producer nor the others. One that is moving
 *    asks the producer to pause instead, and is cut off at four times the limit, unless it is a feed (feed.ts). Either
 *    is cut off when lagging subscribers of all streams take too much memory, and it is among the furthest behind
 *    (stream-budget.ts).
 * 4. A subscriber that is cut off has seen no partial event: within a frame its connection is broken off instead of
 *    ended in order.
 *
 * Event ids are `<epoch>-<seq>`, the epoch new with each stream object, so an id from before a restart brings nothing
 * but the state. catch-up.ts makes the frames that a subscriber gets before the live ones.
 */
import { randomBytes } from 'node:crypto';
import { inSlices } from '#src/base/async/slices.ts';
import type { ResyncReason } from '#src/contract/wire/shape.ts';
import { StreamAudience } from './audience.ts';
import { PAUSE_SHARE } from './backpressure.ts';
import { type OpeningOptions, openingOf } from './catch-up.ts';
import { ChunkRing } from './chunk-ring.ts';
import { CommitGate } from './commit-gate.ts';
import type { EventSink, Subscription } from './event-sink.ts';
import {
  encodeEventFrame,
  type Frameable,
  frameOf,
  type LargeFrame,
  PIECE_BYTES,
  wholeFrame,
} from './frame.ts';
import type { ProcessStreams } from './process-streams.ts';
import { Subscriber } from './subscriber.ts';

export interface PublishedStreamOptions<Event extends Frameable> extends Partial<ProcessStreams> {
  /** The event that a new subscriber gets after the state. */
  readonly replayed: Event;
  /** Returns the event that makes a subscriber connect again. */
  readonly resync: (reason: ResyncReason) => Event;
  /** The share of the limit kept for subscribers that come back with a `Last-Event-ID`. Default: an eighth. */
  readonly resumeShare?: number | undefined;
}

export interface SubscribeOptions<Event> {
  /** The id of the last event that was received. With an empty or unknown id, no events count as missed. */
  readonly lastEventId?: string;
  /**
   * Whether the subscriber only observes: it does not count as a user of the stream, and is cut off instead of pausing the
   * producer.
   */
  readonly observes?: boolean;
  /**
   * Returns the current state: a snapshot, then the events that rebuild the rest; `replayed` is added after it. Called
   * at once, and at most once. It may publish first; the state then contains those events. The events are encoded as they are sent
   * and must not change.
   */
  readonly replay: () => readonly Event[];
}

const DEFAULT_LIMIT_BYTES = 1024 * 1024;
const RESUME_SHARE = 1 / 8;
const NOTHING = new Uint8Array();

/** A new subscriber. It joins once all earlier events are sent. */
interface Newcomer<Event extends Frameable> {
  readonly subscriber: Subscriber;
  readonly opening: Pick<OpeningOptions<Event>, 'lastEventId' | 'seq' | 'state' | 'closing'>;
}

interface Frame {
  /** The encoded bytes; empty for a large event until its bytes are made. */
  content: string | Uint8Array;
  readonly seq: number;
  readonly isLast: boolean;
}

export class PublishedStream<Event extends Frameable> {
  readonly #replayed: Event;
  readonly #resync: (reason: ResyncReason) => Event;
  readonly #epoch = randomBytes(5).toString('hex');
  readonly #ring = new ChunkRing();
  /** Frames that wait for commits, and subscribers that join after them. */
  readonly #gate = new CommitGate<Frame | Newcomer<Event>>({
    release: (item) => {
      if ('subscriber' in item) {
        this.#admit(item);
        return;
      }
      const { length } = item.content;
      this.#audience.gatedBytes -= length;
      if (this.#batchLength + length > PIECE_BYTES) this.#seal();
      this.#batch.push(item);
      this.#batchLength += length;
      this.#isDeliveryDue = true; // at the end of the turn, or when all frames that waited for the same commit are released
    },
    /** Its commit failed, so the event never happened. */
    drop: (item) => {
      if ('subscriber' in item) return;
      this.#audience.gatedBytes -= item.content.length;
      if (item.isLast) this.#closing = undefined;
    },
    advanced: () => (this.#isDeliveryDue ? this.#deliver() : this.#audience.settle()),
  });
  readonly #audience: StreamAudience;
  /** The producer is paused when more bytes than this are held. */
  readonly #maxHeldBytes: number;
  #seq = 0;
  #batch: Frame[] = [];
  #batchLength = 0;
  #isDeliveryDue = false;
  #closing: Event | undefined;
  #isEnded = false;

  constructor({
    replayed,
    resync,
    limitBytes = DEFAULT_LIMIT_BYTES,
    resumeShare = RESUME_SHARE,
    heartbeats,
    budget,
    onCutOff,
  }: PublishedStreamOptions<Event>) {
    this.#replayed = replayed;
    this.#resync = resync;
    this.#maxHeldBytes = limitBytes * PAUSE_SHARE;
    this.#audience = new StreamAudience({
      ring: this.#ring,
      limitBytes,
      resumeBytes: limitBytes * resumeShare,
      heartbeats,
      budget,
      isEnded: () => this.#isEnded,
      resyncFrame: (reason) => this.#resyncFrame(reason),
      onCutOff,
      feedHead: () => ({
        lastId: `${this.#epoch}-${this.#seq}`,
        resync: { slow_subscriber: resync('slow_subscriber'), server_stopping: resync('server_stopping') },
      }),
    });
  }

  /** The number of followers. */
  get subscriberCount(): number {
    return this.#audience.size;
  }

  /** The number of subscribers that are not observers. */
  get userCount(): number {
    return this.#audience.userCount;
  }

  /** The bytes of the events that are in memory for subscribers that come back. */
  get resumableBytes(): number {
    return this.#ring.heldBytes;
  }

  /** Whether the last event was sent. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /**
   * Sends an event to all subscribers, once `after` has resolved and all earlier events are sent. The event is encoded now. A
   * large event is encoded in slices of the next turns, and must not change until then. An event whose commit fails is dropped.
   * After `end`, the call is ignored.
   */
  publish(event: Event, after?: Promise<unknown>): void {
    if (this.#closing === undefined) this.#enqueue(event, after, false);
  }

  /** The id of the last published event, from which a subscriber can continue. */
  get lastEventId(): string {
    return `${this.#epoch}-${this.#seq}`;
  }

  /** Sends the last event, then ends every subscriber. Idempotent. */
  end(event: Event, after?: Promise<unknown>): void {
    if (this.#closing !== undefined) return;
    this.#closing = event;
    this.#enqueue(event, after, true);
  }

  /**
   * Gives the sink the snapshot, the events that it has missed since `lastEventId` if the ring still has them, the current state,
   * and then all events that are published from now on, until the sink is closed or cut off, or the stream ends. After `end`, the
   * sink gets the state, the last event and the end.
   */
  subscribe(
    sink: EventSink,
    { lastEventId = '', observes = false, replay }: SubscribeOptions<Event>,
  ): Subscription {
    this.#seal();
    const subscriber = new Subscriber(sink, observes);
    const audience = this.#audience;
    const state = replay(); // may publish waiting text, which is part of the state, so the id must count it
    const opening = { lastEventId, seq: this.#seq, state, closing: this.#closing };
    audience.add(subscriber);
    this.#gate.push({ subscriber, opening }, undefined);
    if (subscriber.blocked) audience.settle();
    return audience.subscriptionOf(subscriber);
  }

  /** Ends every subscription, so that clients connect again for the current state. The stream continues. */
  resync(reason: ResyncReason): void {
    this.#audience.cutOffAll(reason);
  }

  /**
   * Calls `listener` with true when the producer should pause and false when it may continue. Returns a function that removes the listener.
   */
  onPressure(listener: (paused: boolean) => void): () => void {
    return this.#audience.backpressure.listeners.add(listener);
  }

  /** Calls `listener` each time the last user has left; observers may remain. Returns a function that removes the listener. */
  onUnused(listener: () => void): () => void {
    return this.#audience.unused.add(listener);
  }

  /** Calls `listener` each time the last subscriber has left. Returns a function that removes the listener. */
  onEmpty(listener: () => void): () => void {
    return this.#audience.empty.add(listener);
  }

  #enqueue(event: Event, after: Promise<unknown> | undefined, isLast: boolean): void {
    const seq = ++this.#seq;
    const content = frameOf(`${this.#epoch}-${seq}`, event);
    const wasDue = this.#isDeliveryDue;
    if (typeof content === 'string') {
      this.#audience.gatedBytes += content.length;
      this.#gate.push({ content, seq, isLast }, after);
    } else {
      const frame: Frame = { content: NOTHING, seq, isLast };
      this.#gate.push(frame, Promise.all([this.#make(frame, content), after]));
    }
    if (this.#isDeliveryDue && !wasDue) queueMicrotask(() => this.#deliverAfterTurn());
    if (this.#audience.gatedBytes > this.#maxHeldBytes) this.#audience.settle();
  }

  /** Encodes a large frame in slices. */
  async #make(frame: Frame, pieces: LargeFrame): Promise<void> {
    const bytes = await inSlices(wholeFrame(pieces));
    frame.content = bytes;
    this.#audience.gatedBytes += bytes.byteLength;
  }

  #admit({ subscriber, opening }: Newcomer<Event>): void {
    this.#seal();
    const ring = this.#ring;
    const replayed = this.#replayed;
    subscriber.join(ring.nextIndex, openingOf({ ...opening, ring, replayed, epoch: this.#epoch }));
    this.#audience.pump(subscriber);
  }

  /** Makes a chunk of the released frames. */
  #seal(): void {
    const last = this.#batch.at(-1);
    if (last === undefined) return;
    this.#ring.push(bytesOf(this.#batch), this.#batch[0]!.seq, last.seq);
    this.#batch = [];
    this.#batchLength = 0;
    this.#isEnded = last.isLast;
  }

  /**
   * Delivers the released frames at the end of a turn. If further frames wait for the commit of the turn, the released frames are
   * sent once that commit has begun. Otherwise the disk would wait until the frames are written to every subscriber.
   */
  #deliverAfterTurn(): void {
    if (this.#gate.isEmpty) this.#deliver();
    else setImmediate(() => this.#deliver());
  }

  #deliver(): void {
    if (!this.#isDeliveryDue) return;
    this.#isDeliveryDue = false;
    this.#seal();
    this.#audience.pumpAll();
  }

  #resyncFrame(reason: ResyncReason): Uint8Array {
    return Buffer.from(encodeEventFrame(`${this.#epoch}-${this.#seq}.0`, this.#resync(reason)));
  }
}

/** Returns the bytes of frames that are sent together. A large frame is sent alone. */
function bytesOf(frames: readonly Frame[]): Uint8Array {
  const [first] = frames;
  if (first !== undefined && typeof first.content !== 'string') return first.content;
  return Buffer.from(frames.map(({ content }) => content).join(''));
}
