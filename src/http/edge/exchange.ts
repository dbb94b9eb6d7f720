/**
 * An `HttpExchange` takes one request to its one reply: admission, body, handler, commit, answer. It is always in one
 * phase, and the phase owns what has to be released when the client leaves:
 *
 *   callback ─▶ receiving ─▶ handling ─┬─▶ sending ──▶ over
 *       │                      ▲       ├─▶ streaming ─▶ over
 *       └──────────────────────┘       └─▶ deferred ──▶ over
 *
 *   Any phase after `callback` becomes `gone` when the client leaves. Work that has begun goes on then, because others
 *   may depend on it; only its answer is dropped.
 *
 * - A reply waits until everything is on disk that it tells of: nobody sees what a crash could undo. This is the only
 *   place that waits for commits.
 * - A GET whose handler returns at once is answered within the callback of uWebSockets.js: no promise, no abort handler.
 */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import type { AppError } from '#src/core/errors.ts';
import { beginIdempotent, type IdempotentAttempt } from '../idempotency/idempotency.ts';
import { DeferredAnswer } from '../reply/deferred-answer.ts';
import { EventStream, STREAM_HEADERS } from '../reply/event-stream.ts';
import { problemReply, toAppError } from '../reply/problem.ts';
import { type DeferredReply, ok, type PlainReply, type Reply, type StreamReply } from '../reply/reply.ts';
import {
  type EncodedReply,
  encodeReply,
  isLarge,
  writeHead,
  writeInPieces,
  writeWhole,
} from '../reply/write-reply.ts';
import { pathWith } from '../route.ts';
import { type AdmittedRequest, admit, type PreparedRoute } from './admission.ts';
import { CALLBACK, GONE, HANDLING, OVER, type Phase, RECEIVING, SENDING } from './exchange-phase.ts';
import type { HttpContext } from './http-context.ts';
import { parseJsonBody } from './json-body.ts';
import { readBody } from './request-body.ts';

const NO_BODY = Buffer.alloc(0);

export class HttpExchange {
  readonly #prepared: PreparedRoute;
  readonly #context: HttpContext;
  readonly #res: HttpResponse;
  readonly #request: AdmittedRequest;
  #phase: Phase = CALLBACK;
  #attempt: IdempotentAttempt | undefined;
  /** Resolves once everything that the handler of a GET has read is on disk. */
  #observed: Promise<void> | undefined;

  constructor(prepared: PreparedRoute, context: HttpContext, res: HttpResponse, request: AdmittedRequest) {
    this.#prepared = prepared;
    this.#context = context;
    this.#res = res;
    this.#request = request;
  }

  /** Takes the request. uWebSockets.js reuses `req` when this returns. */
  receive(req: HttpRequest): void {
    let expectsBody: boolean;
    try {
      expectsBody = admit(this.#request, this.#prepared, this.#context, this.#res, req);
    } catch (error) {
      this.#refuse(error);
      return;
    }
    if (expectsBody) {
      this.#enter(RECEIVING);
      readBody(this.#res, this.#prepared.limitBytes, (body, isEnd) => this.#receiveBody(body, isEnd));
    } else this.#handleInTurn(NO_BODY);
  }

  #receiveBody(body: Buffer | AppError, isEnd: boolean): void {
    const request = this.#request;
    if (!isEnd) request.endsConnection = true;
    try {
      if (!Buffer.isBuffer(body)) throw body;
      request.body = parseJsonBody(body);
      this.#prepared.checkBody?.(request.body);
    } catch (error) {
      this.#refuse(error);
      return;
    }
    this.#handleInTurn(body);
  }

  /**
   * Answers a request whose handler will not run. When the connection is to end, that has to wait for the next turn: in
   * this one uWebSockets.js would go on with the bytes after the request and forget to end the connection, but while an
   * answer is due it ends the connection at the first byte of another request.
   */
  #refuse(error: unknown): void {
    const reply = this.#problem(error);
    if (this.#request.endsConnection) {
      this.#enter(RECEIVING);
      setImmediate(() => this.#send(reply));
    } else this.#send(reply);
  }

  /** Runs the handler; in the next turn when the connection is to end, for the reason that `#refuse` gives. */
  #handleInTurn(body: Buffer): void {
    if (this.#request.endsConnection) {
      this.#enter(HANDLING);
      setImmediate(() => this.#handle(body));
    } else this.#handle(body);
  }

  #handle(body: Buffer): void {
    let reply: Reply | Promise<Reply>;
    try {
      reply = this.#replayOrRun(body);
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

  #replayOrRun(body: Buffer): Reply | Promise<Reply> {
    const { route, isMutation } = this.#prepared;
    const request = this.#request;
    const { principal, idempotencyKey, headers, credential } = request;
    const { idempotency, observe } = this.#context;
    if (idempotencyKey !== undefined && idempotency !== undefined && principal !== undefined) {
      const attempt = beginIdempotent(idempotency, {
        workspaceId: principal.workspaceId,
        method: route.method,
        path: this.#path(),
        key: idempotencyKey,
        credential,
        headers,
        body,
      });
      if (attempt.kind === 'replay') return attempt.reply;
      this.#attempt = attempt;
    }
    if (isMutation) return route.handle(request);
    const { result, uncommitted } = observe(() => route.handle(request));
    this.#observed = uncommitted;
    return result;
  }

  /** Runs in the turn that made the reply, so that the idempotency record joins the commit of what the request did. */
  #finish(reply: Reply): void {
    if (reply.kind === 'stream') this.#openStream(reply);
    else if (reply.kind === 'deferred') this.#defer(reply);
    else this.#sendOnceCommitted(reply);
  }

  #sendOnceCommitted(reply: PlainReply): void {
    let encoded: EncodedReply;
    let committed: Promise<void> | undefined;
    try {
      encoded = this.#encode(reply);
      this.#attempt?.settle(encoded);
      committed = this.#prepared.isMutation ? this.#context.durable() : this.#observed;
    } catch (error) {
      this.#send(this.#problem(error));
      return;
    }
    if (committed === undefined) {
      this.#send(encoded);
      return;
    }
    if (this.#phase.name !== 'deferred') this.#enter(HANDLING);
    committed.then(
      () => this.#send(encoded),
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
    const { requestId, endsConnection, principal } = this.#request;
    const { heartbeatMs, pendingAnswers } = this.#context;
    this.#enter(HANDLING); // registers the abort handler, without which the timer could outlive the client
    if (this.#phase.name !== 'gone') {
      const answer = new DeferredAnswer(this.#res, requestId, heartbeatMs, endsConnection);
      this.#enter({ name: 'deferred', answer, failed });
    }
    const { action } = this.#prepared;
    const pending = { caller: principal, action, revoke: (error: AppError) => this.#revoke(error) };
    pendingAnswers.add(pending);
    value
      .finally(() => pendingAnswers.delete(pending))
      .then(
        (result) => this.#finish(ok(result)),
        (error: unknown) => this.#finish(this.#problem(error)),
      );
  }

  /** Ends a deferred reply whose caller has lost the right to it. The rest is as if the client had left. */
  #revoke(error: AppError): void {
    if (this.#phase.name === 'gone') return;
    this.#send(this.#problem(error));
    this.#phase = GONE;
    this.#request.abandon();
  }

  #send(reply: EncodedReply): void {
    const phase = this.#phase;
    if (phase.name === 'gone') {
      this.#release();
      return;
    }
    const { requestId, headOnly, endsConnection } = this.#request;
    if (phase.name === 'deferred') {
      phase.answer.stop();
      if (phase.answer.hasBegun && reply.kind === 'bytes') {
        this.#conclude();
        phase.answer.end(reply.bytes);
        return;
      }
    }
    if (!headOnly && !endsConnection && isLarge(reply)) {
      this.#enter(SENDING);
      writeInPieces(this.#res, reply, requestId, () => this.#conclude());
      return;
    }
    const isCorked = phase.name === 'callback';
    this.#conclude();
    writeWhole(this.#res, reply, { requestId, headOnly, close: endsConnection, isCorked });
  }

  #openStream({ open }: StreamReply): void {
    const res = this.#res;
    this.#enter(HANDLING);
    this.#release();
    if (this.#phase.name === 'gone') return;
    const { requestId, headOnly, principal } = this.#request;
    res.cork(() => {
      writeHead(res, 200, requestId, STREAM_HEADERS);
      if (headOnly) {
        this.#phase = OVER;
        res.endWithoutBody();
        return;
      }
      const stream = new EventStream(res, principal, this.#context.streams);
      this.#enter({ name: 'streaming', stream });
      stream.start(open);
    });
  }

  /** Goes to another phase, unless the client has left. Leaving `callback` registers the abort handler. */
  #enter(phase: Phase): void {
    const { name } = this.#phase;
    if (name === 'gone') return;
    this.#phase = phase;
    if (name !== 'callback') return;
    this.#context.inFlight.add(this);
    this.#res.onAborted(() => this.#abandon());
  }

  /** Releases what the phase owns: the client has left. A handler that is at work keeps its place in `inFlight`. */
  #abandon(): void {
    const phase = this.#phase;
    this.#phase = GONE;
    this.#request.abandon();
    if (phase.name === 'receiving' || phase.name === 'sending') this.#release();
    else if (phase.name === 'deferred') phase.answer.stop();
    else if (phase.name === 'streaming') phase.stream.close();
  }

  #conclude(): void {
    if (this.#phase.name !== 'callback') this.#release();
    this.#phase = OVER;
  }

  #release(): void {
    this.#context.inFlight.delete(this);
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
    return pathWith(this.#prepared.route.path, this.#request.params);
  }
}
