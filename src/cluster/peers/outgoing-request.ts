/**
 * A request that this worker has received and that another worker carries out. A worker that no longer owns the slot refuses
 * without any effect, and the request is sent to the next owner. A request that was lost after it was sent is never sent again,
 * because its outcome is unknown.
 */
import { invariant } from '#src/base/errors/invariant.ts';
import type { AnswerEvents, AnswerHead, ForwardedHead, ForwardedRequest } from './forwarding.ts';
import { type FeedPosition, numberBytes, splitHead, withHead } from './frame-parts.ts';
import { FRAME, type FrameType } from './frame-socket.ts';
import type { PeerClient, PeerExchange } from './peer-client.ts';

/**
 * The place to which the request goes: a worker that owns its slot, this worker itself, or nowhere
 * yet.
 */
export type Destination = PeerClient | 'here' | 'nowhere';

export interface OutgoingRequestOptions {
  readonly head: ForwardedHead;
  /** The whole body, or an empty one when it is streamed. */
  readonly body: Uint8Array;
  readonly events: AnswerEvents;
  readonly destination: (slot: number) => Destination;
}

const RETRY_MS = 10;
/** Slots move within a few milliseconds after a worker has ended. A worker that hangs is found within a second. */
const MAX_WAIT_MS = 3000;

export class RequestToPeer implements ForwardedRequest, PeerExchange {
  readonly #options: OutgoingRequestOptions;
  readonly #giveUpAt = performance.now() + MAX_WAIT_MS;
  #client: PeerClient | undefined;
  #exchange = 0;
  #isOver = false;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: OutgoingRequestOptions) {
    this.#options = options;
    this.#send();
  }

  #send(): void {
    const { head, body, events, destination } = this.#options;
    const to = destination(head.slot);
    if (to === 'here') {
      this.#isOver = true;
      events.here();
    } else if (to === 'nowhere') this.#sendLater();
    else {
      this.#client = to;
      this.#exchange = to.begin(this);
      to.send(FRAME.request, this.#exchange, ...withHead(head, body));
    }
  }

  #sendLater(): void {
    if (performance.now() > this.#giveUpAt) this.#lose();
    else this.#retry = setTimeout(() => this.#send(), RETRY_MS);
  }

  #lose(): void {
    this.#isOver = true;
    this.#options.events.lost();
  }

  frame(type: FrameType, bytes: Buffer): void {
    const { events } = this.#options;
    if (type === FRAME.reply) {
      this.#conclude();
      const { head, body } = splitHead<AnswerHead>(bytes);
      events.whole(head, body);
    } else if (type === FRAME.head) events.head(splitHead<AnswerHead>(bytes).head);
    else if (type === FRAME.data) events.data(bytes);
    else if (type === FRAME.follow) this.#follow(splitHead<FeedPosition>(bytes).head);
    else if (type === FRAME.end) {
      this.#conclude();
      events.end(bytes);
    } else if (type === FRAME.cut) {
      this.#conclude();
      events.cut();
    } else if (type === FRAME.credit) events.credit(bytes.readUInt32LE(0));
    else if (type === FRAME.misplaced) {
      this.#forget();
      this.#sendLater();
    }
  }

  /** The connection to the other worker has ended. */
  closed(): void {
    this.#client = undefined;
    if (!this.#isOver) this.#lose();
  }

  body(bytes: Uint8Array, isLast: boolean): void {
    this.#client?.send(isLast ? FRAME.bodyEnd : FRAME.body, this.#exchange, bytes);
  }

  credit(bytes: number): void {
    this.#client?.send(FRAME.credit, this.#exchange, numberBytes(bytes));
  }

  abort(): void {
    if (this.#isOver) return;
    this.#client?.send(FRAME.abort, this.#exchange);
    this.#conclude();
  }

  #follow({ feed, nextIndex }: FeedPosition): void {
    const mirror = this.#client?.mirror(feed);
    invariant(
      mirror !== undefined,
      'A worker opens a feed before it names the feed, on the same connection.',
    );
    this.#options.events.follow(mirror, nextIndex);
  }

  #conclude(): void {
    this.#isOver = true;
    clearTimeout(this.#retry);
    this.#forget();
  }

  #forget(): void {
    this.#client?.end(this.#exchange);
    this.#client = undefined;
  }
}
