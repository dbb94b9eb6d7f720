/**
 * An `HttpExchange` takes one request to its one reply: admission, body, handler, commit, answer. It is always in one phase, and
 * the phase owns the resources that are released when the client leaves:
 *
 *   callback ─▶ receiving ─▶ handling ─┬─▶ sending ──▶ over
 *       │                      ▲       ├─▶ streaming ─▶ over
 *       │                      │       ├─▶ deferred ──▶ over
 *       └──────────────────────┘       └─▶ forwarded ─▶ over
 *
 * - Where several workspaces send requests, one that has used up its share of a turn waits in `receiving` (`WorkspaceTurns`).
 * - A GET whose handler returns at once goes from `callback` to `over`: it is answered within the callback of uWebSockets.js,
 *   without a promise or an abort handler.
 * - A reply that waits for something stays in `handling`, and its idempotency record is stored before.
 * - Any phase after `callback` becomes `gone` when the client leaves. A handler that has begun goes on, because others may depend
 *   on its work; only its answer is dropped.
 * - A reply is sent once everything that it reports is on disk, so no client sees a state that a crash could undo.
 *
 * Only this file changes the phase and registers the abort handler of the response.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Home } from '#src/cluster/slots.ts';
import { AppError } from '#src/core/errors.ts';
import { isShortJson } from '#src/core/json/json-write.ts';
import { MAX_SIZE_AT_ONCE } from '#src/core/slices.ts';
import { unawaited } from '#src/core/unawaited.ts';
import type { IdempotentAttempt } from '../idempotency/idempotency.ts';
import {
  type ForwardedEnd,
  ForwardedExchange,
  forwardedHead,
  type HeadWithoutSlot,
} from '../peer/forwarded-exchange.ts';
import { acceptsGzip, compress, isCompressible, MIN_COMPRESSED_BYTES } from '../reply/compress.ts';
import { DeferredAnswer, whilePending } from '../reply/deferred-answer.ts';
import { openStream, writeStreamHead } from '../reply/event-stream.ts';
import { problemReply, toAppError } from '../reply/problem.ts';
import {
  type DeferredReply,
  type FileReply,
  ok,
  type PlainReply,
  type Reply,
  type StreamReply,
  type WaitingReply,
  type WebReply,
} from '../reply/reply.ts';
import { sendFile } from '../reply/send-file.ts';
import { sendWeb } from '../reply/send-web.ts';
import {
  type EncodedReply,
  encodeInSlices,
  encodeReply,
  MAX_WHOLE_BODY_BYTES,
  writeInPieces,
  writeWhole,
} from '../reply/write-reply.ts';
import type { WireRequest, WireResponse } from '../wire-exchange.ts';
import { type AdmittedRequest, admit, type PreparedRoute } from './admission.ts';
import { BodyCharge } from './body-memory.ts';
import { BodyStream } from './body-stream.ts';
import {
  CALLBACK,
  GONE,
  HANDLING,
  OVER,
  type Phase,
  RECEIVING,
  SENDING,
  STREAMING,
} from './exchange-phase.ts';
import type { HttpContext, StreamPermits } from './http-context.ts';
import { claimKey, shownPathOf } from './key-claim.ts';
import type { InFlightRequest } from './open-requests.ts';
import { readBody } from './request-body.ts';
import { requireJson } from './request-head.ts';
import { findHome } from './request-home.ts';
import { NO_BODY, type TakenBody, takeBody } from './taken-body.ts';

/** A request that another worker carries out, or may carry out, with the bytes of its body. */
interface ForwardedBody {
  readonly head: HeadWithoutSlot;
  readonly bytes: Uint8Array;
}

const NO_BYTES = new Uint8Array(0);

export class HttpExchange implements InFlightRequest, ForwardedEnd {
  readonly #prepared: PreparedRoute;
  readonly #context: HttpContext;
  readonly #res: WireResponse;
  readonly #request: AdmittedRequest;
  #phase: Phase = CALLBACK;
  /** The request of uWebSockets.js, in phase `callback` only. */
  #req: WireRequest | undefined;
  #encodings: string | undefined;
  /** The time at which the server had the whole request, of `performance.now()`. */
  #beganAtMs = performance.now();
  /** Set for a request that another worker carries out, and in a cluster for every request whose home is in its body. */
  #forwarded: ForwardedBody | undefined;
  /** Set for a body that came in pieces. */
  #body: BodyCharge | undefined;
  /** Set for a request with an idempotency key, until it is settled. */
  #attempt: IdempotentAttempt | undefined;
  /** Resolves once everything that the handler of a GET has read is on disk. */
  #observed: Promise<void> | undefined;

  constructor(prepared: PreparedRoute, context: HttpContext, res: WireResponse, request: AdmittedRequest) {
    this.#prepared = prepared;
    this.#context = context;
    this.#res = res;
    this.#request = request;
  }

  // ── Phases ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Goes to another phase, unless the client has left. Leaving `callback` registers the abort handler. */
  #enter(phase: Phase): void {
    const { name } = this.#phase;
    if (name === 'gone') return;
    this.#phase = phase;
    if (name !== 'callback') return;
    this.#encodings = this.#req?.getHeader('accept-encoding');
    this.#req = undefined;
    this.#context.open.inFlight.add(this);
    this.#res.onAborted(() => this.#abandon());
  }

  /** Releases the resources of the phase: the client has left. A handler that is at work keeps its place in `inFlight`. */
  #abandon(): void {
    const phase = this.#phase;
    this.#leave();
    if (phase.name === 'receiving' || phase.name === 'sending') this.#release();
    else if (phase.name === 'deferred') phase.answer.stop();
    else if (phase.name === 'forwarded') {
      this.#release();
      phase.exchange.abandon();
    }
  }

  /** Continues as if the client had left. */
  #leave(): void {
    this.#phase = GONE;
    this.#request.abandon();
  }

  /** Ends the exchange: uWebSockets.js is about to get the whole reply, or has got its last byte. */
  #conclude(): void {
    if (this.#phase.name !== 'callback') this.#release();
    this.#phase = OVER;
  }

  /** Takes the exchange out of the requests for which a closing server waits. */
  #release(): void {
    this.#context.open.inFlight.delete(this);
    this.#body?.release();
  }

  /** The notebook, conversation or workspace of the request; undefined until it is known, and when any worker may answer it. */
  get home(): Home | undefined {
    return this.#request.home;
  }

  get phase(): Phase['name'] {
    return this.#phase.name;
  }

  // ── Admission and body ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Takes the request. uWebSockets.js reuses `req` when this returns. */
  receive(req: WireRequest): void {
    this.#req = req;
    this.#context.open.count++;
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
      const address = this.#context.clientAddress(this.#res, req); // the home does not know how the request has come
      const head = forwardedHead(this.#request, this.#prepared, address, req);
      this.#forwarded = { head, bytes: NO_BYTES };
      if (takesBytes === true) {
        this.#forward(this.#forwarded, NO_BODY);
        return;
      }
    }
    if (takesBytes === true) unawaited(this.#handleContent(expectsBody), 'exchange: a request with content');
    else if (expectsBody) {
      this.#enter(RECEIVING);
      const { limitBytes } = this.#prepared;
      const announcedBytes = Number(req.getHeader('content-length')) || 0;
      const charge = (bytes: number) => this.#charge(bytes);
      const limits = { limitBytes, announcedBytes, charge };
      readBody(this.#res, limits, (bytes, isEnd) => this.#receiveBody(bytes, isEnd));
    } else if (this.#request.endsConnection) this.#handleInNextTurn(NO_BODY);
    else {
      const workspaceId = this.#request.principal?.workspaceId;
      if (isElsewhere || workspaceId === undefined || this.#context.turns.isAlone(workspaceId))
        this.#handle(NO_BODY);
      else this.#takeTurn(workspaceId, () => this.#handle(NO_BODY));
    }
  }

  /** Does the work of the request when it is the turn of its workspace, unless the client leaves before. */
  #takeTurn(workspaceId: string, work: () => void): void {
    const isDone = this.#context.turns.take(workspaceId, () => {
      if (this.#phase.name !== 'gone') work();
    });
    if (!isDone) this.#enter(RECEIVING);
  }

  /** Charges memory of the body, until the exchange is over, to the workspace of the caller. */
  #charge(bytes: number): boolean {
    const { principal, holder } = this.#request;
    this.#body ??= new BodyCharge(this.#context.bodies, principal?.workspaceId ?? holder?.userId ?? '');
    return this.#body.take(bytes);
  }

  #receiveBody(bytes: Buffer | AppError, isEnd: boolean): void {
    const request = this.#request;
    this.#beganAtMs = performance.now(); // the time in which the client sent its body is not the server's
    if (!isEnd) request.endsConnection = true;
    const workspaceId = request.principal?.workspaceId;
    const isAtOnce =
      bytes instanceof AppError || request.elsewhere !== undefined || workspaceId === undefined;
    if (isAtOnce || this.#context.turns.isAlone(workspaceId)) this.#takeBody(bytes, workspaceId);
    else this.#takeTurn(workspaceId, () => this.#takeBody(bytes, workspaceId));
  }

  #takeBody(bytes: Buffer | AppError, workspaceId: string | undefined): void {
    const request = this.#request;
    try {
      if (bytes instanceof AppError) throw bytes;
      if (this.#forwarded !== undefined) this.#forwarded = { ...this.#forwarded, bytes };
      const isAbsent = request.uncheckedType !== undefined && bytes.byteLength === 0;
      if (request.uncheckedType !== undefined && !isAbsent) requireJson(request.uncheckedType);
      const taken = isAbsent
        ? NO_BODY
        : takeBody(bytes, this.#prepared.checkBody, request.idempotencyKey, workspaceId);
      if (taken instanceof Promise) {
        this.#enter(HANDLING);
        taken.then(
          (whole) => this.#handleInNextTurn(whole),
          (error: unknown) => this.#refuse(error),
        );
      } else if (request.endsConnection) this.#handleInNextTurn(taken);
      else this.#handle(taken);
    } catch (error) {
      this.#refuse(error);
    }
  }

  /**
   * Answers a request whose handler will not run. If the connection must end, the answer is sent in the next turn: in this turn
   * uWebSockets.js would parse the bytes after the request and not end the connection. While an answer is pending, it ends the
   * connection at the first byte of another request.
   */
  #refuse(error: unknown): void {
    const reply = this.#problem(error);
    if (this.#request.endsConnection) {
      this.#enter(RECEIVING);
      setImmediate(() => this.#send(reply));
    } else this.#send(reply);
  }

  /**
   * Runs the handler of a request and ends the connection after it, for the reason that `#refuse`
   * gives.
   */
  #handleInNextTurn(body: TakenBody): void {
    this.#enter(HANDLING);
    setImmediate(() => this.#handle(body));
  }

  /** Forwards the request, or makes the reply and finishes it, now or later. */
  #handle(body: TakenBody): void {
    const request = this.#request;
    const { route, isStream } = this.#prepared;
    const { streamPermits, forwarding } = this.#context;
    request.body = body.value;
    if (this.#forwarded !== undefined) {
      if (route.homeInBody === true) findHome(request, this.#prepared, forwarding!);
      if (request.elsewhere !== undefined) {
        this.#forward(this.#forwarded, body);
        return;
      }
    }
    if (isStream && streamPermits !== undefined)
      unawaited(this.#takePermit(streamPermits, body), 'exchange: the permit of a stream');
    else if (request.idempotencyKey !== undefined && this.#claimsInSharedTurn) {
      this.#enter(HANDLING);
      this.#context.decide(() => this.#claimInSharedTurn(body));
    } else if (route.prepare !== undefined || route.sharedTurn === true)
      this.#carryOut(() => this.#claim(body));
    else this.#run(() => this.#claim(body));
  }

  /** Runs a handler that reads the body as it arrives. The rest of the body is read before the reply is sent. */
  async #handleContent(expectsBody: boolean): Promise<void> {
    const request = this.#request;
    const content = expectsBody ? new BodyStream(this.#res, this.#prepared.limitBytes) : undefined;
    if (content !== undefined) {
      request.content = content;
      request.signal.addEventListener('abort', () => content.abandon());
    }
    this.#enter(HANDLING);
    const attempt = async () => this.#reply(() => this.#claim(NO_BODY));
    // If the caller loses the right to the request before the end, the request is answered at once, and reading the body fails.
    const reply = await this.#whilePending(attempt(), { endsConnection: true }).catch((error: unknown) =>
      this.#problem(error),
    );
    if ((await content?.discard()) === false) request.endsConnection = true;
    if (request.endsConnection) await nextTurn(); // for the reason that `#refuse` gives
    this.#finish(reply);
  }

  // ── Another worker ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Lets the worker that is the request's home carry it out. `body` is used if this worker becomes
   * the home in the meantime.
   */
  #forward({ head, bytes }: ForwardedBody, body: TakenBody): void {
    const { forwarding, open } = this.#context;
    const exchange = new ForwardedExchange({
      head: { ...head, slot: this.#request.elsewhere! },
      bytes,
      end: this,
      carryOutHere: () => {
        this.#forwarded = undefined;
        this.#request.elsewhere = undefined;
        this.#enter(HANDLING);
        this.#handle(body);
      },
      res: this.#res,
      limitBytes: this.#prepared.limitBytes,
      forwarding: forwarding!,
      mirrored: open.mirrored,
    });
    this.#enter({ name: 'forwarded', exchange });
    // The client has left while its body was read. Nothing was done yet, and no answer is needed.
    if (this.#phase.name === 'gone') this.#release();
    else exchange.begin();
  }

  /** Notes that uWebSockets.js is about to get the other worker's whole reply, or has got its last byte. */
  forwardedReplySent(): void {
    this.#conclude();
  }

  /** Notes that an event stream of this worker, the mirror of another worker's, owns the response from now on. */
  forwardedStreamOpened(): void {
    this.#enter(STREAMING);
    this.#release();
  }

  /** Answers a request that the other worker did not answer. */
  forwardedRequestFailed(error: AppError, endsConnection: boolean): void {
    if (endsConnection) this.#request.endsConnection = true;
    this.#refuse(error);
  }

  // ── Handler ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Whether other workers may get a request with the same key at this moment. If so, a shared turn decides which request is carried
   * out, even when the requests have different homes.
   */
  get #claimsInSharedTurn(): boolean {
    const { sharesKeys } = this.#prepared;
    return sharesKeys && this.#request.idempotencyKey !== undefined && this.#context.forwarding !== undefined;
  }

  /** Opens an event stream once its workspace has a permit for it, which is held until the stream itself is counted. */
  async #takePermit(permits: StreamPermits, body: TakenBody): Promise<void> {
    this.#enter(HANDLING);
    try {
      const { principal } = this.#request;
      const taken = principal && permits.take(principal.workspaceId);
      using _permit = taken instanceof Promise ? await this.#whilePending(taken) : taken;
      this.#finish(await this.#reply(() => this.#claim(body)));
    } catch (error) {
      this.#finish(this.#problem(error));
    }
  }

  /** Claims the key in a shared turn. The rest is done after that turn, in which no other worker can commit anything. */
  #claimInSharedTurn(body: TakenBody): void {
    try {
      const replay = this.#claim(body);
      setImmediate(() => this.#carryOut(() => replay));
    } catch (error) {
      this.#finish(this.#problem(error));
    }
  }

  /** Returns the reply to an earlier request with the same key; undefined when the request is to be carried out. */
  #claim(body: TakenBody): Reply | undefined {
    const claim = claimKey(this.#prepared, this.#context, this.#request, body);
    if (claim?.kind === 'replay')
      return this.#prepared.route.resume?.(this.#request, claim.reply) ?? claim.reply;
    this.#attempt = claim;
    return undefined;
  }

  /**
   * Runs the handler, in a shared turn where the route asks for one, unless `replayOf` returns the reply to an earlier request
   * with the same key. The reply is finished in that turn, so that the idempotency record joins its commit. A request that has to
   * be prepared first may take longer: if its caller loses the right to it meanwhile, it is refused at once.
   */
  #carryOut(replayOf: () => Reply | undefined): void {
    const { prepare } = this.#prepared.route;
    if (prepare === undefined) {
      this.#decide(replayOf);
      return;
    }
    try {
      const request = this.#request;
      const { callerChanges } = this.#context.open;
      if (request.changesSeen !== callerChanges.count) callerChanges.renew(request, this.#prepared.action);
      const replay = request.idempotencyKey === undefined ? undefined : replayOf();
      const preparing = replay === undefined ? prepare(request) : undefined;
      if (preparing === undefined) {
        this.#decide(() => replay);
        return;
      }
      this.#enter(HANDLING);
      this.#whilePending(preparing).then(
        () => this.#decide(() => replay),
        (error: unknown) => this.#finish(this.#problem(error)),
      );
    } catch (error) {
      this.#finish(this.#problem(error));
    }
  }

  #decide(replayOf: () => Reply | undefined): void {
    if (this.#prepared.route.sharedTurn === true) {
      this.#enter(HANDLING);
      this.#context.decide(() => this.#run(replayOf));
    } else this.#run(replayOf);
  }

  /** Makes the reply and finishes it, in this turn unless the handler returns a promise. */
  #run(replayOf: () => Reply | undefined): void {
    let reply: Reply | Promise<Reply>;
    try {
      reply = this.#reply(replayOf);
    } catch (error) {
      reply = this.#problem(error);
    }
    if (!(reply instanceof Promise)) {
      this.#finish(reply);
      return;
    }
    this.#enter(HANDLING);
    reply.then(
      (value) => this.#finish(value),
      (error: unknown) => this.#finish(this.#problem(error)),
    );
  }

  /**
   * Returns the reply of the handler, or the one that `replayOf` returns to an earlier request with the same key. Throws when the
   * caller has lost the right to the request since its admission, because its body or its turn may have taken long to arrive.
   */
  #reply(replayOf: () => Reply | undefined): Reply | Promise<Reply> {
    const { route, isMutation, action } = this.#prepared;
    const request = this.#request;
    const { callerChanges } = this.#context.open;
    if (request.changesSeen !== callerChanges.count) callerChanges.renew(request, action);
    const replay = request.idempotencyKey === undefined ? undefined : replayOf();
    if (replay !== undefined) return replay;
    const isStranger = action !== undefined && request.principal === undefined;
    const handle = () =>
      isStranger && route.handleStranger ? route.handleStranger(request) : route.handle(request);
    if (isMutation) return handle();
    const { result, uncommitted } = this.#context.observe(handle);
    this.#observed = uncommitted;
    return result;
  }

  // ── Reply ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Takes the reply, in the turn that made it, so that the idempotency record joins the commit of the request's writes. */
  #finish(reply: Reply): void {
    if (reply.kind === 'stream') this.#openStream(reply);
    else if (reply.kind === 'deferred') this.#defer(reply);
    else if (reply.kind === 'waiting') this.#wait(reply);
    else if (reply.kind === 'file' || reply.kind === 'web') this.#sendBody(reply);
    else this.#sendOnceCommitted(reply);
  }

  #sendOnceCommitted(reply: PlainReply): void {
    let encoded: EncodedReply | Promise<EncodedReply>;
    let committed: Promise<void> | undefined;
    try {
      if (this.#attempt !== undefined) {
        encoded = this.#encode(reply);
        this.#attempt.settle(encoded);
      } else if (reply.kind !== 'json') encoded = reply;
      else if (isShortJson(reply.value, MAX_SIZE_AT_ONCE)) encoded = this.#encode(reply);
      else encoded = encodeInSlices(reply, this.#request.principal?.workspaceId);
      committed = this.#prepared.isMutation ? this.#context.durable() : this.#observed;
    } catch (error) {
      this.#send(this.#problem(error));
      return;
    }
    if (committed === undefined && !(encoded instanceof Promise)) {
      this.#send(encoded);
      return;
    }
    if (this.#phase.name !== 'deferred') this.#enter(HANDLING);
    Promise.all([encoded, committed]).then(
      ([ready]) => this.#send(ready),
      (error: unknown) => this.#send(this.#problem(error)),
    );
  }

  #encode(reply: PlainReply): EncodedReply {
    try {
      return encodeReply(reply);
    } catch (error) {
      return this.#problem(error);
    }
  }

  #defer({ value, failed }: DeferredReply): void {
    this.#observed = undefined;
    this.#enter(HANDLING); // registers the abort handler, without which the timer could outlive the client
    if (this.#phase.name !== 'gone') {
      const { heartbeatMs } = this.#context;
      const answer = new DeferredAnswer(this.#res, this.#request, heartbeatMs, this.#request.endsConnection);
      this.#enter({ name: 'deferred', answer, failed });
    }
    this.#whilePending(value).then(
      (result) => this.#finish(ok(result)),
      (error: unknown) => this.#finish(this.#problem(error)),
    );
  }

  #wait({ accepted, reply }: WaitingReply): void {
    this.#attempt?.settle(this.#encode(accepted));
    this.#attempt = undefined;
    this.#enter(HANDLING);
    this.#whilePending(reply).then(
      (value) => {
        this.#observed = this.#context.durable(); // the reply may contain data that was read only now
        this.#finish(value);
      },
      (error: unknown) => this.#finish(this.#problem(error)),
    );
  }

  /**
   * Resolves with the value. If the caller loses the right to the request before that, the exchange is answered at once. With
   * `endsConnection` the connection ends with that answer, because an unread body may still be arriving.
   */
  #whilePending<T>(value: Promise<T>, { endsConnection = false } = {}): Promise<T> {
    const { principal: caller, home } = this.#request;
    const revoke = (error: AppError) => {
      if (endsConnection) this.#request.endsConnection = true;
      if (this.#phase.name === 'gone') return;
      this.#send(this.#problem(error));
      this.#leave();
    };
    const pending = { caller, action: this.#prepared.action, home, revoke };
    return whilePending(this.#context.open.pendingAnswers, pending, value);
  }

  /** Sends the reply, unless the client has left. */
  #send(reply: EncodedReply): void {
    const phase = this.#phase;
    this.#report(reply.status, reply.kind === 'bytes' ? reply.bytes.length : 0, phase.name === 'deferred');
    if (phase.name === 'deferred') {
      phase.answer.stop();
      if (phase.answer.hasBegun && reply.kind === 'bytes') {
        this.#conclude();
        phase.answer.end(reply.bytes);
        return;
      }
    }
    const isShort = reply.kind === 'empty' || reply.bytes.length < MIN_COMPRESSED_BYTES;
    const mayCompress = !isShort && phase.name !== 'gone' && !this.#request.endsConnection;
    if (mayCompress && isCompressible(reply) && acceptsGzip(this.#acceptedEncodings)) {
      this.#enter(HANDLING);
      unawaited(
        compress(reply).then((compressed) => this.#write(compressed)),
        'exchange: the compression of a reply',
      );
    } else this.#write(reply);
  }

  /** The `Accept-Encoding` header, which is read when it is needed or when `req` is about to be reused. */
  get #acceptedEncodings(): string {
    return this.#encodings ?? this.#req?.getHeader('accept-encoding') ?? '';
  }

  #write(reply: EncodedReply): void {
    const { name } = this.#phase;
    if (name === 'gone') {
      this.#release();
      return;
    }
    const { requestId, allowedOrigin, headOnly, endsConnection } = this.#request;
    const isLarge = reply.kind === 'bytes' && reply.bytes.length > MAX_WHOLE_BODY_BYTES;
    if (isLarge && !headOnly && !endsConnection) {
      this.#enter(SENDING);
      writeInPieces(this.#res, reply, this.#request, () => this.#conclude());
      return;
    }
    const options = { requestId, allowedOrigin, headOnly, close: endsConnection };
    if (name === 'callback') {
      this.#phase = OVER;
      writeWhole(this.#res, reply, options); // uWebSockets.js corks its callbacks by itself
      return;
    }
    this.#conclude();
    this.#res.cork(() => writeWhole(this.#res, reply, options));
  }

  /** Sends a body that is read while it is sent: a file, once everything that the handler has read is on disk, or a web response. */
  #sendBody(reply: FileReply | WebReply): void {
    this.#enter(HANDLING);
    let hasBegun = false;
    const begin = (status: number, bytes: number) => {
      hasBegun = true;
      this.#report(status, bytes, true);
      this.#enter(SENDING);
      return this.#phase.name !== 'gone';
    };
    const sending =
      reply.kind === 'file'
        ? sendFile(this.#res, reply, this.#request, { ready: this.#observed, begin })
        : sendWeb(this.#res, reply, this.#request, begin);
    sending.then(
      () => this.#conclude(),
      (error: unknown) => {
        if (hasBegun && this.#phase.name === 'gone') return this.#conclude();
        const problem = this.#problem(error);
        if (!hasBegun) return this.#send(problem);
        this.#conclude();
        this.#res.close(); // so that nobody takes the body for complete
      },
    );
  }

  /** Opens an event stream, which owns the response from then on. For HEAD only its head is written. */
  #openStream({ open }: StreamReply): void {
    this.#enter(HANDLING);
    this.#release();
    if (this.#phase.name === 'gone') return;
    if (this.#request.headOnly) {
      this.#conclude();
      writeStreamHead(this.#res, this.#request);
      return;
    }
    this.#report(200, 0, true);
    this.#enter(STREAMING);
    const { requestId, principal, holder, home } = this.#request;
    const { action, route } = this.#prepared;
    const owner = { caller: principal ?? holder, action, home };
    const failed = (err: unknown) =>
      this.#context.log.error({ err, requestId, route: route.path }, 'an event stream could not be opened');
    openStream(this.#res, this.#request, { open, owner, streams: this.#context.open.streams, failed });
  }

  /** Returns the reply that describes an error. */
  #problem(error: unknown): EncodedReply {
    // The path is rebuilt, because `req` is gone by now.
    const context = {
      requestId: this.#request.requestId,
      instance: shownPathOf(this.#prepared, this.#request),
    };
    const problem = toAppError(error, this.#context.log, context);
    const phase = this.#phase;
    if (phase.name === 'deferred' && phase.answer.hasBegun) return encodeReply(ok(phase.failed(problem)));
    return problemReply(problem, context);
  }

  /** Logs and counts the request, when its status is certain. */
  #report(status: number, bytes: number, mayTakeLong: boolean): void {
    const { route, durations } = this.#prepared;
    const ms = performance.now() - this.#beganAtMs;
    durations?.observe(status, ms / 1000);
    this.#request.span?.end({
      attributes: { 'http.response.status_code': status },
      error: status >= 500 ? String(status) : undefined,
    });
    const hasLeft = this.#phase.name === 'gone';
    this.#context.requestLog.replied(route, this.#request, { status, bytes, ms, mayTakeLong, hasLeft });
  }
}
