import { inSlices } from '#src/base/async/slices.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { ResyncReason } from '#src/contract/wire/shape.ts';
import { StreamAudience } from '#src/runtime/events/audience.ts';
import { ChunkRing } from '#src/runtime/events/chunk-ring.ts';
import { type EventSink, HEARTBEAT, type Subscription } from '#src/runtime/events/event-sink.ts';
import { dataFrame, type LargeFrame, wholeFrame } from '#src/runtime/events/frame.ts';
import type { ProcessStreams } from '#src/runtime/events/process-streams.ts';
import type { Laggard } from '#src/runtime/events/stream-budget.ts';
import { Subscriber } from '#src/runtime/events/subscriber.ts';

/**
 * How many bytes of later frames a page may lag behind; four times as many while the page takes bytes. Beyond that, the stream of
 * the page ends; the page connects again and gets the present state. The state itself does not count, so a slow page gets all of
 * it.
 */
const MAX_LAG_BYTES = 16 * 2 ** 20;

/** How many frames may wait that are being made, and have no size yet. */
const MAX_UNMADE_FRAMES = 64;
/** How long the making of a frame may take that is made at once. */
const AT_ONCE_MS = 2;

/** The parts of the process that the streams of pages share with all others. Without them, nothing is charged or counted. */
export type PageStreams = Partial<Pick<ProcessStreams, 'budget' | 'onCutOff'>>;

/**
 * The stream of one page: the state, whose frames are encoded while the browser takes them, then frames in their order. What waits is in
 * the ring of the stream, and is charged to the budget of all streams.
 */
export class PageStream implements Subscription {
  readonly #sink: EventSink;
  readonly #ring = new ChunkRing();
  readonly #audience: StreamAudience;
  readonly #subscriber: Subscriber;
  readonly #subscription: Subscription;
  /** The frames that come after one that is still being made; undefined when none is. */
  #waiting: (Uint8Array | Promise<Uint8Array>)[] | undefined;
  #waitingBytes = 0;
  /** The frames among `#waiting` that are still being made. */
  readonly #unmade = new Set<Promise<Uint8Array>>();

  /** `left` is called once, when the stream is over. Nothing is sent before `begin`. */
  constructor(sink: EventSink, { budget, onCutOff }: PageStreams, left: () => void) {
    this.#sink = sink;
    this.#audience = new StreamAudience({
      ring: this.#ring,
      limitBytes: MAX_LAG_BYTES,
      resumeBytes: 0,
      heartbeats: undefined,
      budget,
      isEnded: () => false,
      resyncFrame: () => HEARTBEAT, // a page connects again by itself
      onCutOff,
    });
    this.#audience.empty.add(left);
    this.#subscriber = new Subscriber(sink, false);
    this.#subscription = this.#audience.subscriptionOf(this.#subscriber);
    this.#audience.add(this.#subscriber);
  }

  /** The bytes that the page has not taken and that are in memory. Shared frames are counted, too. */
  get queuedBytes(): number {
    return this.#subscriber.ownBytes + this.#subscriber.lagBytes(this.#ring);
  }

  get isOver(): boolean {
    return !this.#audience.has(this.#subscriber);
  }

  /** Sends the first frames, which take `heldBytes` of memory until all are sent. Later frames may be sent at any time. */
  begin(frames: Iterable<string | LargeFrame>, heldBytes = 0): void {
    this.#subscriber.join(this.#ring.nextIndex, { frames, heldBytes });
    this.#audience.pumpAll();
  }

  /** Sends a frame, or one that is still being made. Later frames wait for it. */
  send(frame: Uint8Array | Promise<Uint8Array>): void {
    if (this.isOver) return;
    if (this.#waiting !== undefined) this.#wait(this.#waiting, frame);
    else if (frame instanceof Promise) unawaited(this.#sendWhenMade(frame), 'page-stream: a frame of a page');
    else this.#push(frame);
  }

  async #sendWhenMade(frame: Promise<Uint8Array>): Promise<void> {
    const waiting: (Uint8Array | Promise<Uint8Array>)[] = [];
    this.#waiting = waiting;
    const made = await frame;
    this.#waiting = undefined;
    this.#waitingBytes = 0;
    if (this.isOver) return;
    this.#push(made);
    for (const next of waiting) this.send(next); // one of them may have to be waited for again
  }

  #wait(waiting: (Uint8Array | Promise<Uint8Array>)[], frame: Uint8Array | Promise<Uint8Array>): void {
    waiting.push(frame);
    if (frame instanceof Promise)
      unawaited(this.#countWhenMade(waiting, frame), 'page-stream: a frame that waits');
    else this.#count(waiting, frame);
  }

  async #countWhenMade(waiting: readonly unknown[], frame: Promise<Uint8Array>): Promise<void> {
    this.#unmade.add(frame); // a frame may wait more than once
    if (this.#unmade.size > MAX_UNMADE_FRAMES) this.cutOff();
    const made = await frame;
    this.#unmade.delete(frame);
    this.#count(waiting, made);
  }

  /** Counts the bytes of a frame that waits, once it is made. */
  #count(waiting: readonly unknown[], { byteLength }: Uint8Array): void {
    if (this.#waiting !== waiting) return;
    this.#waitingBytes += byteLength;
    if (this.#waitingBytes > MAX_LAG_BYTES) this.cutOff();
  }

  #push(frame: Uint8Array): void {
    this.#ring.push(frame);
    this.#audience.pumpAll();
    if (this.#subscriber.blocked) this.#sink.retry?.();
  }

  beat(): void {
    this.#audience.beat(0, 1);
  }

  /** Yields the stream, for the budget, while its connection does not take all bytes. */
  laggards(): Iterable<Laggard> {
    return this.#audience.laggards();
  }

  probe(): Uint8Array {
    return this.#subscription.probe();
  }

  writable(): void {
    this.#subscription.writable();
  }

  /** Ends the stream of a page that lags, or that must connect again. */
  cutOff(reason: ResyncReason = 'slow_subscriber'): void {
    this.#subscription.cutOff(reason);
  }

  /** Ends the stream at once; a page that has not taken all frames gets the rest of the present one. */
  end(): void {
    if (this.isOver) return;
    // The page gets its last frame, which may say that the session is closed, even while an earlier frame is still being made.
    const last = this.#waiting?.at(-1);
    if (last instanceof Uint8Array) this.#push(last);
    this.#waiting = undefined;
    if (this.#subscriber.isCaughtUp(this.#ring)) {
      this.close();
      this.#sink.end();
    } else this.#audience.dismiss(this.#subscriber, 'server_stopping');
  }

  close(): void {
    this.#subscription.close();
  }
}

/** Returns the frames of short messages, one after the other. */
export function messageFrames(
  messages: readonly (readonly [op: string, data: Readonly<Record<string, unknown>>])[],
): Buffer {
  return Buffer.from(
    messages.map(([op, data]) => `data: ${JSON.stringify({ op, data: { op, ...data } })}\n\n`).join(''),
  );
}

/**
 * Returns one message for a page as a frame, or as one that is still being made in slices. The frame is made at once when that is
 * quick: the message is short, or its long texts are prepared. Its values must not change.
 */
export function slicedFrame(
  op: string,
  data: Readonly<Record<string, unknown>>,
  workspaceId: string,
): Uint8Array | Promise<Uint8Array> {
  const frame = lateFrame(op, data);
  if (typeof frame === 'string') return Buffer.from(frame);
  const making = wholeFrame(frame);
  const endMs = performance.now() + AT_ONCE_MS;
  do {
    const step = making.next();
    if (step.done === true) return step.value;
  } while (performance.now() < endMs);
  return inSlices(making, workspaceId);
}

/** Returns one message for a page as a frame that is encoded when it is sent. Its values must not change. */
export function lateFrame(op: string, data: Readonly<Record<string, unknown>>): string | LargeFrame {
  return dataFrame({ op, data: { op, ...data } });
}

/**
 * Returns the frame that ends the stream of a page for good. After it, marimo's page does not
 * connect again.
 */
export function closeFrame(reason: 'MARIMO_SHUTDOWN'): Buffer {
  return Buffer.from(`event: close\ndata: ${JSON.stringify({ code: 1000, reason })}\n\n`);
}
