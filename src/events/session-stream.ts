/**
 * The event stream of one session. It lives as long as the session is loaded; subscribers come and go.
 *
 * A frame is encoded once. Frames published in one turn leave as one chunk: one write for each subscriber. Chunks are
 * kept in a ring that all subscribers share; a subscriber whose connection refuses bytes is a place in that ring.
 *
 * Invariants:
 * 1. Subscribers see events in the order of `publish`. An event that waits for its commit holds all after it.
 * 2. Nothing uncommitted is seen, nothing is missed or seen twice: a snapshot that is taken while events are held is
 *    sent after them and replaces them; what is published after it follows.
 * 3. A stalled subscriber is cut off at the limit; it holds neither the producer nor the others. One that is moving asks
 *    the producer to pause instead, and is cut off at four times the limit. Either is cut off when the streams of the whole
 *    server take too much memory by those who lag, and it is among the furthest behind (stream-budget.ts).
 * 4. A subscriber that is cut off has seen no half event: within a frame its connection breaks instead of being ended.
 *
 * Event ids are `<epoch>-<seq>`, the epoch new with each stream object, so an id from before a restart asks for the
 * state again. So do the ids of the replay, which have a third part; that of `session.replayed` has none.
 */
import { randomBytes } from 'node:crypto';
import type { Envelope } from '#src/wire/events.ts';
import { Backpressure } from './backpressure.ts';
import { placeAfter, stateFrames } from './catch-up.ts';
import { ChunkRing } from './chunk-ring.ts';
import { CommitGate } from './commit-gate.ts';
import type { EventSink, Subscription } from './event-sink.ts';
import { encodeFrame, joinFrames, PIECE_BYTES } from './frame.ts';
import type { Heartbeats } from './heartbeats.ts';
import { Listeners } from './listeners.ts';
import type { ChargedStream, Laggard, StreamBudget } from './stream-budget.ts';
import { Subscriber } from './subscriber.ts';

export interface SessionStreamOptions {
  readonly sessionId: string;
  /** How far a subscriber may fall behind. */
  readonly limitBytes?: number;
  /** Of the limit: what is kept for subscribers that come back with a `Last-Event-ID`. Default: an eighth. */
  readonly resumeShare?: number | undefined;
  readonly heartbeats?: Heartbeats;
  /** What is kept for those who lag counts into it. */
  readonly budget?: StreamBudget;
}

export interface SubscribeOptions {
  /** The value of the `Last-Event-ID` header; an empty or unknown id asks for the current state. */
  readonly lastEventId?: string;
  /**
   * The current state: `session.snapshot`, then what rebuilds notebook or conversation; `session.replayed` is added
   * after it. Called at once, and at most once. The envelopes are encoded as they are sent and must not change.
   */
  readonly replay: () => readonly Envelope[];
}

const DEFAULT_LIMIT_BYTES = 1024 * 1024;
const MOVING_LIMIT_FACTOR = 4;
const RESUME_SHARE = 1 / 8;
const HEARTBEAT = Buffer.from(':\n\n');

interface Frame {
  readonly text: string;
  readonly seq: number;
  readonly isLast: boolean;
}

export class SessionStream implements ChargedStream {
  readonly sessionId: string;
  readonly #limitBytes: number;
  readonly #resumeBytes: number;
  readonly #heartbeats: Heartbeats | undefined;
  readonly #budget: StreamBudget | undefined;
  #chargedBytes = 0;
  readonly #epoch = randomBytes(5).toString('hex');
  readonly #ring = new ChunkRing();
  /** Frames that wait for commits, and subscribers that join after them. */
  readonly #gate = new CommitGate<Frame | Subscriber>({
    release: (item) => this.#release(item),
    drop: (item) => this.#drop(item),
    advanced: () => (this.#isDeliveryDue ? this.#deliver() : this.settle()),
  });
  readonly #subscribers = new Set<Subscriber>();
  readonly #blocked = new Set<Subscriber>();
  readonly #backpressure: Backpressure;
  readonly #empty = new Listeners<void>();
  #seq = 0;
  #gatedLength = 0;
  #batch: Frame[] = [];
  #batchLength = 0;
  #isDeliveryDue = false;
  #closing: Envelope | undefined;
  #isEnded = false;

  constructor({
    sessionId,
    limitBytes = DEFAULT_LIMIT_BYTES,
    resumeShare = RESUME_SHARE,
    heartbeats,
    budget,
  }: SessionStreamOptions) {
    this.sessionId = sessionId;
    this.#limitBytes = limitBytes;
    this.#resumeBytes = limitBytes * resumeShare;
    this.#heartbeats = heartbeats;
    this.#budget = budget;
    this.#backpressure = new Backpressure(limitBytes, () => this.settle());
  }

  get subscriberCount(): number {
    return this.#subscribers.size;
  }

  /** Whether the last event is out. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /**
   * Sends an event to everyone, once `after` has resolved and everything published before is out. It is encoded now.
   * An event whose commit fails is dropped. Ignored once `end` was called.
   */
  publish(envelope: Envelope, after?: Promise<unknown>): void {
    if (this.#closing === undefined) this.#enqueue(envelope, after, false);
  }

  /** Sends the last event, `session.closed`, then ends every subscriber. Idempotent. */
  end(envelope: Envelope, after?: Promise<unknown>): void {
    if (this.#closing !== undefined) return;
    this.#closing = envelope;
    this.#enqueue(envelope, after, true);
  }

  /**
   * Gives the sink what it has missed since `lastEventId` if that is still here, else the current state; then everything
   * that is published from now on, until it is closed, cut off, or the stream ends. After `end` was called: the
   * state, the last event, the end.
   */
  subscribe(sink: EventSink, { lastEventId = '', replay }: SubscribeOptions): Subscription {
    this.#seal();
    const place = this.#closing === undefined ? placeAfter(this.#ring, this.#epoch, lastEventId) : undefined;
    const subscriber = new Subscriber(sink, place?.rest ?? this.#state(replay()));
    this.#subscribers.add(subscriber);
    if (this.#subscribers.size === 1) this.#heartbeats?.add(this);
    if (place === undefined) this.#gate.push(subscriber, undefined);
    else {
      subscriber.join(place.index);
      this.#pump(subscriber);
    }
    if (subscriber.blocked) this.settle();
    return {
      probe: () => subscriber.takeByte() ?? HEARTBEAT,
      writable: () => {
        if (!this.#subscribers.has(subscriber)) return;
        subscriber.unblock();
        this.#pump(subscriber);
        this.settle();
      },
      close: () => {
        if (this.#remove(subscriber)) this.settle();
      },
    };
  }

  /** Tells every subscriber to connect again for the current state, and ends it. The stream goes on. */
  resync(reason: string): void {
    for (const subscriber of this.#subscribers) this.#cutOff(subscriber, reason);
    this.settle();
  }

  /** Calls `listener` with true when the producer should pause and false when it may go on. Returns what ends this. */
  onPressure(listener: (paused: boolean) => void): () => void {
    return this.#backpressure.listeners.add(listener);
  }

  /** Calls `listener` each time the last subscriber has left. Returns what ends this. */
  onEmpty(listener: () => void): () => void {
    return this.#empty.add(listener);
  }

  /** Keeps the connections of one slot of subscribers alive. */
  beat(slot: number, slots: number): void {
    let place = 0;
    for (const subscriber of this.#subscribers) {
      if (place++ % slots !== slot || subscriber.blocked) continue;
      subscriber.write(HEARTBEAT);
      if (subscriber.blocked) this.#blocked.add(subscriber);
    }
  }

  #enqueue(envelope: Envelope, after: Promise<unknown> | undefined, isLast: boolean): void {
    const seq = ++this.#seq;
    const text = encodeFrame(`${this.#epoch}-${seq}`, envelope);
    this.#gatedLength += text.length;
    this.#gate.push({ text, seq, isLast }, after);
    if (!this.#gate.isEmpty) this.settle();
  }

  #release(item: Frame | Subscriber): void {
    if (item instanceof Subscriber) {
      this.#seal();
      item.join(this.#ring.nextIndex);
      this.#pump(item);
      return;
    }
    this.#gatedLength -= item.text.length;
    if (this.#batchLength + item.text.length > PIECE_BYTES) this.#seal();
    this.#batch.push(item);
    this.#batchLength += item.text.length;
    if (this.#isDeliveryDue) return;
    this.#isDeliveryDue = true;
    queueMicrotask(() => this.#deliver());
  }

  /** Its commit failed, so it never happened. */
  #drop(item: Frame | Subscriber): void {
    if (item instanceof Subscriber) return;
    this.#gatedLength -= item.text.length;
    if (item.isLast) this.#closing = undefined;
  }

  /** Makes a chunk of the frames that were released. */
  #seal(): void {
    const last = this.#batch.at(-1);
    if (last === undefined) return;
    let text = '';
    for (const frame of this.#batch) text += frame.text;
    this.#ring.push(Buffer.from(text), this.#batch[0]!.seq, last.seq);
    this.#batch = [];
    this.#batchLength = 0;
    this.#isEnded = last.isLast;
  }

  #deliver(): void {
    if (!this.#isDeliveryDue) return;
    this.#isDeliveryDue = false;
    this.#seal();
    for (const subscriber of this.#subscribers) if (!subscriber.blocked) this.#pump(subscriber);
    this.settle();
  }

  #pump(subscriber: Subscriber): void {
    if (!this.#subscribers.has(subscriber)) return;
    subscriber.pump(this.#ring);
    if (subscriber.blocked) this.#blocked.add(subscriber);
    else this.#blocked.delete(subscriber);
    if (this.#isEnded && subscriber.isCaughtUp(this.#ring)) {
      this.#remove(subscriber);
      subscriber.sink.end();
    }
  }

  /** Cuts off subscribers that lag too far, discards what nobody needs, and pauses or resumes the producer. */
  settle(): void {
    let needed = this.#ring.nextIndex;
    let worstBytes = this.#gatedLength;
    let ownBytes = 0;
    let furthestBytes = 0;
    const nowMs = this.#blocked.size > 0 ? performance.now() : 0;
    for (const subscriber of this.#blocked) {
      const lagBytes = subscriber.lagBytes(this.#ring);
      const isMoving = subscriber.isMoving(nowMs);
      if (lagBytes > (isMoving ? this.#limitBytes * MOVING_LIMIT_FACTOR : this.#limitBytes)) {
        this.#cutOff(subscriber, 'slow_subscriber');
        continue;
      }
      if (isMoving) worstBytes = Math.max(worstBytes, lagBytes);
      if (lagBytes > 0) needed = Math.min(needed, subscriber.next);
      ownBytes += subscriber.ownBytes;
      furthestBytes = Math.max(furthestBytes, lagBytes);
    }
    this.#ring.trim(needed, this.#resumeBytes);
    this.#backpressure.update(worstBytes);
    const chargedBytes = ownBytes + furthestBytes;
    if (chargedBytes === this.#chargedBytes) return;
    this.#chargedBytes = chargedBytes;
    this.#budget?.charge(this, chargedBytes);
  }

  /** Those whose connection has not taken everything; for the budget. */
  *laggards(): Generator<Laggard> {
    for (const subscriber of this.#blocked) {
      const { ownBytes } = subscriber;
      const behindBytes = ownBytes + subscriber.lagBytes(this.#ring);
      yield { behindBytes, ownBytes, cutOff: () => this.#cutOff(subscriber, 'slow_subscriber') };
    }
  }

  #cutOff(subscriber: Subscriber, reason: string): void {
    this.#remove(subscriber);
    const envelope: Envelope = {
      type: 'session.resync-required',
      sessionId: this.sessionId,
      data: { reason },
    };
    const last = Buffer.from(encodeFrame(`${this.#epoch}-${this.#seq}.0`, envelope));
    subscriber.sink.cutOff([...subscriber.restOfFrame(), last]);
  }

  #state(envelopes: readonly Envelope[]): Iterator<Uint8Array, undefined> {
    const { sessionId } = this;
    const replayed: Envelope = { type: 'session.replayed', sessionId, data: {} };
    return joinFrames(stateFrames(`${this.#epoch}-${this.#seq}`, envelopes, replayed, this.#closing));
  }

  #remove(subscriber: Subscriber): boolean {
    if (!this.#subscribers.delete(subscriber)) return false;
    this.#blocked.delete(subscriber);
    if (this.#subscribers.size === 0) {
      this.#heartbeats?.delete(this);
      this.#empty.tell();
    }
    return true;
  }
}
