/**
 * The way of a finished reply to its client, as the phase of the exchange, its size and the caller ask for it: whole, in
 * pieces, compressed, from a file, or as an event stream. Logs and counts the request when its status is certain.
 */

import { acceptsGzip, compress, isCompressible } from '../reply/compress.ts';
import { EventStream, STREAM_HEADERS } from '../reply/event-stream.ts';
import type { FileReply, StreamReply } from '../reply/reply.ts';
import { sendFile } from '../reply/send-file.ts';
import { type EncodedReply, isLarge, writeHead, writeInPieces, writeWhole } from '../reply/write-reply.ts';
import type { WireResponse } from '../wire-exchange.ts';
import type { AdmittedRequest, PreparedRoute } from './admission.ts';
import { type ExchangeState, HANDLING, SENDING, STREAMING } from './exchange-state.ts';
import type { HttpContext } from './http-context.ts';

export class ReplySender {
  readonly #prepared: PreparedRoute;
  readonly #context: HttpContext;
  readonly #res: WireResponse;
  readonly #request: AdmittedRequest;
  readonly #state: ExchangeState;
  /** When the server had the whole request, of `performance.now()`. */
  #beganAtMs = performance.now();

  constructor(
    prepared: PreparedRoute,
    context: HttpContext,
    res: WireResponse,
    request: AdmittedRequest,
    state: ExchangeState,
  ) {
    this.#prepared = prepared;
    this.#context = context;
    this.#res = res;
    this.#request = request;
    this.#state = state;
  }

  /** Notes that the body has arrived: the time that the client took to send it is not the server's. */
  restartClock(): void {
    this.#beganAtMs = performance.now();
  }

  /** Sends the reply, unless the client has left. */
  send(reply: EncodedReply): void {
    const { phase } = this.#state;
    this.#report(reply.status, reply.kind === 'bytes' ? reply.bytes.length : 0, phase.name === 'deferred');
    if (phase.name === 'deferred') {
      phase.answer.stop();
      if (phase.answer.hasBegun && reply.kind === 'bytes') {
        this.#state.conclude();
        phase.answer.end(reply.bytes);
        return;
      }
    }
    const { endsConnection } = this.#request;
    const isWanted = phase.name !== 'gone' && !endsConnection;
    if (isWanted && isCompressible(reply) && acceptsGzip(this.#state.acceptedEncodings)) {
      this.#state.enter(HANDLING);
      void compress(reply).then((compressed) => this.#write(compressed));
    } else this.#write(reply);
  }

  #write(reply: EncodedReply): void {
    const { phase } = this.#state;
    if (phase.name === 'gone') {
      this.#state.release();
      return;
    }
    const { requestId, allowedOrigin, headOnly, endsConnection } = this.#request;
    if (!headOnly && !endsConnection && isLarge(reply)) {
      this.#state.enter(SENDING);
      writeInPieces(this.#res, reply, this.#request, () => this.#state.conclude());
      return;
    }
    const isCorked = phase.name === 'callback';
    this.#state.conclude();
    const options = { requestId, allowedOrigin, headOnly, close: endsConnection, isCorked };
    writeWhole(this.#res, reply, options);
  }

  /** Sends a file once `ready` resolves; what `problemOf` returns instead, when it cannot be read. */
  sendFile(
    reply: FileReply,
    ready: Promise<void> | undefined,
    problemOf: (error: unknown) => EncodedReply,
  ): void {
    this.#state.enter(HANDLING);
    const begin = (bytes: number) => {
      this.#report(reply.status, bytes, true);
      this.#state.enter(SENDING);
      return this.#state.phase.name !== 'gone';
    };
    sendFile(this.#res, reply, this.#request, { ready, begin }).then(
      () => this.#state.conclude(),
      (error: unknown) => {
        const problem = problemOf(error);
        if (this.#state.phase.name !== 'sending') return this.send(problem);
        this.#state.conclude();
        this.#res.close(); // so that nobody takes the body for whole
      },
    );
  }

  /** Opens an event stream, or writes its head alone for HEAD. */
  openStream({ open }: StreamReply): void {
    const res = this.#res;
    this.#state.enter(HANDLING);
    this.#state.release();
    if (this.#state.phase.name === 'gone') return;
    const { headOnly, principal, holder, home } = this.#request;
    const { action } = this.#prepared;
    res.cork(() => {
      writeHead(res, 200, this.#request, STREAM_HEADERS);
      if (headOnly) {
        this.#state.conclude();
        res.endWithoutBody();
        return;
      }
      this.#report(200, 0, true);
      const caller = principal ?? holder;
      const stream = new EventStream(res, { caller, action, home }, this.#context.open.streams);
      this.#state.enter(STREAMING);
      try {
        stream.start(open);
      } catch (error) {
        // The status has been sent, so that the stream can only end. Thrown on within a callback of uWebSockets.js,
        // the error would end the server.
        const { requestId } = this.#request;
        this.#context.log.error(
          { err: error, requestId, route: this.#prepared.route.path },
          'an event stream could not be opened',
        );
        stream.end();
      }
    });
  }

  #report(status: number, bytes: number, mayTakeLong: boolean): void {
    const { route, durations } = this.#prepared;
    const ms = performance.now() - this.#beganAtMs;
    durations?.observe(status, ms / 1000);
    this.#request.span?.end({
      attributes: { 'http.response.status_code': status },
      error: status >= 500 ? String(status) : undefined,
    });
    const hasLeft = this.#state.phase.name === 'gone';
    this.#context.requestLog.replied(route, this.#request, { status, bytes, ms, mayTakeLong, hasLeft });
  }
}
