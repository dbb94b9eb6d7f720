import { type EventSink, HEARTBEAT, type Subscription } from '#src/events/event-sink.ts';
import type { ResyncReason } from '#src/wire/shape.ts';

/** How much a page may lag. Beyond it, its stream ends; the page connects again and gets the present state. */
const MAX_UNSENT_BYTES = 16 * 2 ** 20;

/** The stream of one page: frames in their order, as fast as the browser takes them. */
export class PageStream implements Subscription {
  readonly #sink: EventSink;
  readonly #left: () => void;
  #unsent: Buffer[] = [];
  #unsentBytes = 0;
  #isBlocked = false;
  #isOver = false;

  /** `left` is called once, when the stream is over. */
  constructor(sink: EventSink, left: () => void) {
    this.#sink = sink;
    this.#left = left;
  }

  send(frame: Buffer): void {
    if (this.#isOver) return;
    if (!this.#isBlocked) {
      this.#isBlocked = !this.#sink.write(frame);
      return;
    }
    this.#unsent.push(frame);
    this.#unsentBytes += frame.length;
    if (this.#unsentBytes > MAX_UNSENT_BYTES) this.cutOff();
    else this.#sink.retry?.();
  }

  beat(): void {
    if (!this.#isBlocked) this.send(HEARTBEAT);
  }

  probe(): Uint8Array {
    return HEARTBEAT;
  }

  writable(): void {
    this.#isBlocked = false;
    while (!this.#isBlocked && !this.#isOver) {
      const next = this.#unsent.shift();
      if (next === undefined) return;
      this.#unsentBytes -= next.length;
      this.#isBlocked = !this.#sink.write(next);
    }
  }

  /** Ends the stream of a page that lags, or that must connect again. */
  cutOff(reason: ResyncReason = 'slow_subscriber'): void {
    if (this.#isOver) return;
    this.close();
    this.#sink.cutOff([], reason);
  }

  /** Ends the stream once all its frames are sent. */
  end(): void {
    if (this.#isOver) return;
    this.close();
    this.#sink.end();
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#unsent = [];
    this.#left();
  }
}

/** Returns one message for a page as a frame of its stream. */
export function messageFrame(op: string, data: Readonly<Record<string, unknown>>): Buffer {
  return Buffer.from(`data: ${JSON.stringify({ op, data: { op, ...data } })}\n\n`);
}

/**
 * Returns the frame that ends the stream of a page for good. After it, marimo's page does not
 * connect again.
 */
export function closeFrame(reason: 'MARIMO_SHUTDOWN'): Buffer {
  return Buffer.from(`event: close\ndata: ${JSON.stringify({ code: 1000, reason })}\n\n`);
}
