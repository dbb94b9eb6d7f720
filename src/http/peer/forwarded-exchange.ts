/**
 * This worker's end of a request that another worker carries out. It passes on the head and the body, and passes the answer back
 * to the client. The unsent part of an answer is bounded, because the other worker sends only as much as this worker gives credit
 * for.
 */

import { AppError } from '#src/base/errors/errors.ts';
import { traceparentOf } from '#src/base/tracing/trace-context.ts';
import type {
  AnswerEvents,
  AnswerHead,
  ForwardedHead,
  ForwardedRequest,
} from '#src/cluster/peers/forwarding.ts';
import type { MirroredStream } from '#src/runtime/events/mirrored-stream.ts';
import type { Home } from '#src/runtime/homes/slots.ts';
import type { AdmittedRequest, PreparedRoute } from '../edge/admission.ts';
import { type BodyCharge, noRoomForBody } from '../edge/body-memory.ts';
import type { Forwarding } from '../edge/http-context.ts';
import { announcesBody } from '../edge/request-head.ts';
import { EventStream, type OpenStreams } from '../reply/event-stream.ts';
import type { WireRequest, WireResponse } from '../wire-exchange.ts';
import { ForwardedUpload } from './forwarded-upload.ts';
import { WINDOW_BYTES } from './peer-response.ts';

/** Credit is given for this many bytes at once, so that a small event does not cost a frame of credit. */
const CREDIT_BYTES = WINDOW_BYTES / 4;

/** The home of a stream knows the caller, and ends the stream when the caller may no longer follow it. */
const NOBODY = { caller: undefined, action: undefined, home: undefined };

/** The head of a request whose home may not be known yet. */
export type HeadWithoutSlot = Omit<ForwardedHead, 'slot'>;

/** The part of the exchange of a forwarded request that its near end uses. */
export interface ForwardedEnd {
  /** The notebook, conversation or workspace of the request, if it is known. */
  readonly home: Home | undefined;
  /** Called when uWebSockets.js is about to get the whole reply, or has got its last byte. */
  forwardedReplySent(): void;
  /** Called when an event stream takes over the response. */
  forwardedStreamOpened(): void;
  /**
   * Called when the other worker did not answer. With `endsConnection`, the connection must end with the answer, because the
   * client sends a body that is not read to its end.
   */
  forwardedRequestFailed(error: AppError, endsConnection: boolean): void;
}

export interface ForwardedExchangeOptions {
  readonly head: ForwardedHead;
  /** The whole body; nothing when it is streamed. */
  readonly bytes: Uint8Array;
  readonly res: WireResponse;
  readonly end: ForwardedEnd;
  /** Carries the request out in this worker, which has become its home. */
  readonly carryOutHere: () => void;
  /** The most bytes that the body may have. */
  readonly limitBytes: number;
  /** The memory of a body that is passed on as it arrives. */
  readonly charge: BodyCharge;
  readonly forwarding: Forwarding;
  /** The event streams that mirrors have taken over. */
  readonly mirrored: OpenStreams;
}

/** Returns the head with which a request of the client at `address` may be forwarded. Must be called in its callback. */
export function forwardedHead(
  request: AdmittedRequest,
  { route, paramNames, openEnd }: PreparedRoute,
  address: string,
  req: WireRequest,
): HeadWithoutSlot {
  const headers: string[] = [];
  req.forEach((name, value) => {
    if (name !== 'x-request-id' && name !== 'traceparent') headers.push(name, value);
  });
  headers.push('x-request-id', request.requestId);
  if (request.trace !== undefined) headers.push('traceparent', traceparentOf(request.trace));
  return {
    operationId: route.operationId,
    method: req.getMethod(),
    url: req.getUrl(),
    query: req.getQuery() ?? '',
    params: paramNames.map((name, i) => (name === openEnd?.name ? '' : req.getParameter(i)!)),
    headers,
    address,
    isStreamed: route.takesBytes === true && announcesBody(req),
  };
}

export class ForwardedExchange implements AnswerEvents {
  readonly #options: ForwardedExchangeOptions;
  readonly #res: WireResponse;
  readonly #end: ForwardedEnd;
  #forwarded: ForwardedRequest | undefined;
  #hasBegun = false;
  #isGone = false;
  /** An event stream that a mirror has taken over. */
  #stream: EventStream | undefined;
  /** The length of the answer's body; undefined when the other worker has not announced it. */
  #length: number | undefined;
  #writtenBytes = 0;
  /** Bytes of the answer that the client's connection has not taken yet. */
  #unsent: Uint8Array | undefined;
  #isBlocked = false;
  #owedBytes = 0;
  /** The body, if it is passed on as it arrives. */
  #upload: ForwardedUpload | undefined;

  constructor(options: ForwardedExchangeOptions) {
    this.#options = options;
    this.#res = options.res;
    this.#end = options.end;
  }

  /** Sends the request. A streamed body is passed on as it arrives. */
  begin(): void {
    const { head, bytes, forwarding, limitBytes, charge } = this.#options;
    if (head.isStreamed)
      this.#upload = new ForwardedUpload(this.#res, { limitBytes, charge, refuse: () => this.#refuse() });
    this.#forwarded = forwarding.forward(head, bytes, this);
    this.#upload?.sendTo(this.#forwarded);
  }

  /** The client has left. */
  abandon(): void {
    this.#isGone = true;
    this.#upload?.abandon();
    this.#forwarded?.abort();
  }

  whole({ status, headers, isEmpty, close }: AnswerHead, body: Buffer): void {
    if (this.#isGone) return;
    this.#upload?.drop(); // a client that was paused can be resumed only before the answer
    this.#end.forwardedReplySent();
    this.#res.cork(() => {
      this.#writeHead(status, headers);
      if (isEmpty) this.#res.endWithoutBody();
      else this.#res.end(body, close);
    });
  }

  head({ status, headers, length }: AnswerHead): void {
    if (this.#isGone) return;
    this.#hasBegun = true;
    this.#length = length;
    this.#res.onWritable(() => {
      this.#isBlocked = false;
      this.#writeUnsent();
      return !this.#isBlocked;
    });
    this.#res.cork(() => this.#writeHead(status, headers));
  }

  data(bytes: Buffer): void {
    if (this.#isGone) return;
    this.#write(bytes);
  }

  /**
   * From now on, sends live events from the mirror. The home of the stream ends it, and is notified when the client leaves.
   */
  follow(mirror: MirroredStream, nextIndex: number): void {
    if (this.#isGone) return;
    const stream = new EventStream(this.#res, NOBODY, this.#options.mirrored);
    this.#stream = stream;
    this.#end.forwardedStreamOpened();
    stream.goOn((sink) => mirror.subscribe(sink, nextIndex, () => this.abandon()));
  }

  end(bytes: Buffer): void {
    if (this.#isGone) return;
    if (this.#stream !== undefined) {
      this.#stream.end();
      return;
    }
    if (this.#length === undefined) {
      this.#end.forwardedReplySent();
      this.#res.cork(() => this.#res.end(bytes));
    } else this.#write(bytes);
  }

  cut(): void {
    if (!this.#isGone) this.#res.close();
  }

  credit(bytes: number): void {
    this.#upload?.credit(bytes);
  }

  lost(): void {
    if (this.#isGone) return;
    if (this.#hasBegun) this.#res.close();
    else this.#fail();
  }

  here(): void {
    if (this.#isGone) return;
    const { head, forwarding, carryOutHere } = this.#options;
    // For a request with a ticket, the caller is not known yet. Of a streamed body, nothing was examined yet.
    if (head.isStreamed || this.#end.home === undefined) {
      this.#fail();
      return;
    }
    forwarding.refresh();
    carryOutHere();
  }

  /** Answers that there is no memory for the body. For the other worker, the client has left. */
  #refuse(): void {
    this.#isGone = true;
    this.#forwarded?.abort();
    this.#upload?.discard((isWhole) => this.#end.forwardedRequestFailed(noRoomForBody(), !isWhole));
  }

  /** Answers that the outcome of the request is unknown. A client that is still sending a body gets the answer after the body. */
  #fail(): void {
    if (this.#upload === undefined) this.#end.forwardedRequestFailed(workerLost(), false);
    else this.#upload.discard((isWhole) => this.#end.forwardedRequestFailed(workerLost(), !isWhole));
  }

  #writeHead(status: string | undefined, headers: readonly string[]): void {
    if (status !== undefined) this.#res.writeStatus(status);
    for (let i = 0; i < headers.length; i += 2) this.#res.writeHeader(headers[i]!, headers[i + 1]!);
  }

  #write(bytes: Uint8Array): void {
    if (this.#length === undefined) {
      // uWebSockets.js buffers the bytes that the connection does not take.
      this.#res.cork(() => {
        this.#isBlocked = !this.#res.write(bytes);
      });
      this.#take(bytes.byteLength);
      return;
    }
    this.#unsent = this.#unsent === undefined ? bytes : Buffer.concat([this.#unsent, bytes]);
    if (!this.#isBlocked) this.#writeUnsent();
  }

  /** Writes the unsent part of a body with a known length, or gives the credit that was held back. */
  #writeUnsent(): void {
    const bytes = this.#unsent;
    if (this.#length === undefined || bytes === undefined) {
      this.#take(0);
      return;
    }
    const before = this.#writtenBytes;
    let isOver = false;
    this.#res.cork(() => {
      const [isTaken, isEnd] = this.#res.tryEnd(bytes, this.#length!);
      isOver = isEnd;
      this.#isBlocked = !isTaken;
    });
    if (isOver) {
      this.#end.forwardedReplySent();
      return;
    }
    this.#writtenBytes = this.#isBlocked ? this.#res.getWriteOffset() : before + bytes.byteLength;
    const taken = this.#writtenBytes - before;
    this.#unsent = taken === bytes.byteLength ? undefined : bytes.subarray(taken);
    this.#take(taken);
  }

  /** Counts bytes that the client's connection has taken, and gives the other worker credit for more. */
  #take(bytes: number): void {
    this.#owedBytes += bytes;
    const isDue = this.#owedBytes >= CREDIT_BYTES || (bytes === 0 && this.#owedBytes > 0);
    if (this.#isBlocked || !isDue) return;
    this.#forwarded?.credit(this.#owedBytes);
    this.#owedBytes = 0;
  }
}

/** Returns the error for a request whose outcome is unknown. */
function workerLost(): AppError {
  const detail =
    'The worker that handled the request has ended, and nobody knows whether the request took effect. You can repeat a POST with the same Idempotency-Key; without a key, read the state first.';
  return new AppError('unavailable', detail, { headers: { 'retry-after': '1' } });
}
