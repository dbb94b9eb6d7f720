/**
 * An `HttpExchange` takes one request to its one reply: admission, body, handler, commit, answer. It is always in one
 * phase, and the phase owns what has to be released when the client leaves:
 *
 *   callback ─▶ receiving ─▶ handling ─┬─▶ sending ──▶ over
 *       │                      ▲       ├─▶ streaming ─▶ over
 *       │                      │       ├─▶ deferred ──▶ over
 *       └──────────────────────┘       └─▶ forwarded ─▶ over
 *
 *   A GET whose handler returns at once goes from `callback` to `over`.
 *   A reply that waits for something stays in `handling`, and its idempotency record is stored before.
 *   Any phase after `callback` becomes `gone` when the client leaves. Work that has begun goes on then, because others
 *   may depend on it; only its answer is dropped.
 *
 * - A reply waits until everything is on disk that it tells of: nobody sees what a crash could undo
 *   (`reply-finisher.ts` waits for the commit).
 * - A GET whose handler returns at once is answered within the callback of uWebSockets.js, without a promise or an abort handler.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError } from '#src/core/errors.ts';
import { ForwardedExchange, forwardedHead, type UnplacedHead } from '../peer/forwarded-exchange.ts';
import { problemReply, toAppError } from '../reply/problem.ts';
import { ok } from '../reply/reply.ts';
import { type EncodedReply, encodeReply } from '../reply/write-reply.ts';
import type { WireRequest, WireResponse } from '../wire-exchange.ts';
import { type AdmittedRequest, admit, type PreparedRoute } from './admission.ts';
import { BodyStream } from './body-stream.ts';
import { ExchangeState, HANDLING, type Phase, RECEIVING } from './exchange-state.ts';
import { HandlerRun } from './handler-run.ts';
import type { HttpContext } from './http-context.ts';
import { pathOf } from './key-claim.ts';
import { ReplyFinisher } from './reply-finisher.ts';
import { ReplySender } from './reply-sender.ts';
import { type ReceivedBody, readBody } from './request-body.ts';
import { findHome } from './request-home.ts';
import { MAX_BYTES_AT_ONCE, NO_BODY, type TakenBody, takeBody } from './taken-body.ts';

/** A request that another worker carries out, or may carry out, and the bytes of its body. */
interface ForwardedBody {
  readonly head: UnplacedHead;
  readonly bytes: Uint8Array;
}

const NO_BYTES = new Uint8Array(0);

export class HttpExchange {
  readonly #prepared: PreparedRoute;
  readonly #context: HttpContext;
  readonly #res: WireResponse;
  readonly #request: AdmittedRequest;
  readonly #state: ExchangeState;
  readonly #sender: ReplySender;
  readonly #run: HandlerRun;
  /** Of a request that another worker carries out, and of every one of a cluster whose home is in its body. */
  #forwarded: ForwardedBody | undefined;

  constructor(prepared: PreparedRoute, context: HttpContext, res: WireResponse, request: AdmittedRequest) {
    this.#prepared = prepared;
    this.#context = context;
    this.#res = res;
    this.#request = request;
    this.#state = new ExchangeState(res, request, context.open.inFlight);
    this.#sender = new ReplySender(prepared, context, res, request, this.#state);
    const state = this.#state;
    const problemOf = (error: unknown) => this.#problem(error);
    const finisher = new ReplyFinisher({
      prepared,
      context,
      res,
      request,
      state,
      sender: this.#sender,
      problemOf,
    });
    this.#run = new HandlerRun({ prepared, context, request, state, finisher, problemOf });
  }

  get #phase(): Phase {
    return this.#state.phase;
  }

  /** Takes the request. uWebSockets.js reuses `req` when this returns. */
  receive(req: WireRequest): void {
    this.#state.receive(req);
    let expectsBody: boolean;
    try {
      expectsBody = admit(this.#request, this.#prepared, this.#context, this.#res, req);
    } catch (error) {
      this.#refuse(error);
      return;
    }
    const { takesBytes, homeInBody } = this.#prepared.route;
    const isElsewhere = this.#request.elsewhere !== undefined;
    if (isElsewhere || (homeInBody === true && this.#context.forwarding !== undefined)) {
      const head = forwardedHead(this.#request, this.#prepared, this.#res, req);
      this.#forwarded = { head, bytes: NO_BYTES };
      if (takesBytes === true) {
        this.#forward(this.#forwarded, NO_BODY);
        return;
      }
    }
    if (takesBytes === true) void this.#handleContent(expectsBody);
    else if (expectsBody) {
      this.#state.enter(RECEIVING);
      const { limitBytes } = this.#prepared;
      const announcedBytes = Number(req.getHeader('content-length')) || 0;
      readBody(this.#res, { limitBytes, announcedBytes }, (body, isEnd) => this.#receiveBody(body, isEnd));
    } else this.#handleInTurn(NO_BODY);
  }

  /** Has the worker carry the request out in which it is at home. `body` is for the case that it comes to this one meanwhile. */
  #forward({ head, bytes }: ForwardedBody, body: TakenBody): void {
    const request = this.#request;
    const end = {
      failed: (error: AppError, endsConnection: boolean) => {
        if (endsConnection) request.endsConnection = true;
        this.#refuse(error);
      },
      here: () => {
        this.#forwarded = undefined;
        request.elsewhere = undefined;
        this.#handle(body);
      },
    };
    const { forwarding, open } = this.#context;
    new ForwardedExchange({
      head: { ...head, slot: request.elsewhere! },
      bytes,
      end,
      res: this.#res,
      state: this.#state,
      limitBytes: this.#prepared.limitBytes,
      forwarding: forwarding!,
      mirrored: open.mirrored,
    }).begin();
  }

  /** Runs a handler that reads the body as it arrives. What it has left unread is read before the reply is sent. */
  async #handleContent(expectsBody: boolean): Promise<void> {
    const request = this.#request;
    const content = expectsBody ? new BodyStream(this.#res, this.#prepared.limitBytes) : undefined;
    if (content !== undefined) {
      request.content = content;
      request.signal.addEventListener('abort', () => content.abandon());
    }
    this.#state.enter(HANDLING);
    const reply = await this.#run.replyToContent().catch((error: unknown) => this.#problem(error));
    if ((await content?.discard()) === false) request.endsConnection = true;
    if (request.endsConnection) await nextTurn(); // for the reason that `#refuse` gives
    this.#run.finish(reply);
  }

  #receiveBody(body: ReceivedBody | AppError, isEnd: boolean): void {
    const request = this.#request;
    this.#sender.restartClock();
    if (!isEnd) request.endsConnection = true;
    try {
      if (body instanceof AppError) throw body;
      const isTakenNow = !this.#isHandledLater && body.bytes.byteLength <= MAX_BYTES_AT_ONCE;
      const bytes = body.isOwn || isTakenNow ? body.bytes : Buffer.from(body.bytes);
      if (this.#forwarded !== undefined) this.#forwarded = { ...this.#forwarded, bytes };
      const taken = takeBody(bytes, this.#prepared.checkBody, request.idempotencyKey);
      if (!(taken instanceof Promise)) {
        this.#handleInTurn(taken);
        return;
      }
      this.#state.enter(HANDLING);
      taken.then(
        (whole) => this.#handleInTurn(whole),
        (error: unknown) => this.#refuse(error),
      );
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** Whether the request goes on in another turn than that in which its body has come. */
  get #isHandledLater(): boolean {
    const { sharedTurn } = this.#prepared.route;
    const isElsewhere = this.#forwarded !== undefined;
    return this.#request.endsConnection || isElsewhere || sharedTurn === true || this.#run.claimsInSharedTurn;
  }

  /**
   * Answers a request whose handler will not run. When the connection is to end, that has to wait for the next turn: in
   * this one uWebSockets.js would go on with the bytes after the request and forget to end the connection, but while an
   * answer is due it ends the connection at the first byte of another request.
   */
  #refuse(error: unknown): void {
    const reply = this.#problem(error);
    if (this.#request.endsConnection) {
      this.#state.enter(RECEIVING);
      setImmediate(() => this.#sender.send(reply));
    } else this.#sender.send(reply);
  }

  /** Runs the handler; in the next turn when the connection is to end, for the reason that `#refuse` gives. */
  #handleInTurn(body: TakenBody): void {
    if (this.#request.endsConnection) {
      this.#state.enter(HANDLING);
      setImmediate(() => this.#handle(body));
    } else this.#handle(body);
  }

  #handle(body: TakenBody): void {
    const { homeInBody } = this.#prepared.route;
    const forwarded = this.#forwarded;
    this.#request.body = body.value;
    if (forwarded !== undefined) {
      if (homeInBody === true) findHome(this.#request, this.#prepared, this.#context.forwarding!);
      if (this.#request.elsewhere !== undefined) {
        this.#forward(forwarded, body);
        return;
      }
    }
    this.#run.begin(body);
  }

  #problem(error: unknown): EncodedReply {
    const context = { requestId: this.#request.requestId, instance: this.#path() };
    const problem = toAppError(error, this.#context.log, context);
    const phase = this.#phase;
    if (phase.name === 'deferred' && phase.answer.hasBegun) return encodeReply(ok(phase.failed(problem)));
    return problemReply(problem, context);
  }

  /** Returns the path of the request, rebuilt because `req` is gone by the time it is needed. */
  #path(): string {
    return pathOf(this.#prepared, this.#request);
  }
}
