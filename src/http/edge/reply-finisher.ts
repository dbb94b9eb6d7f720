/**
 * The second half of an exchange: what becomes of the reply that a handler has made. It is sent once everything that it tells
 * of is on disk, and settles the idempotency key of its request in the commit of what that did.
 */
import type { AppError } from '#src/core/errors.ts';
import { isShortJson } from '#src/core/json/json-write.ts';
import type { IdempotentAttempt } from '../idempotency/idempotency.ts';
import { DeferredAnswer, whilePending } from '../reply/deferred-answer.ts';
import { type DeferredReply, ok, type PlainReply, type Reply, type WaitingReply } from '../reply/reply.ts';
import {
  type EncodedReply,
  encodeInSlices,
  encodeReply,
  MAX_REPLY_AT_ONCE_CHARS,
} from '../reply/write-reply.ts';
import type { WireResponse } from '../wire-exchange.ts';
import type { AdmittedRequest, PreparedRoute } from './admission.ts';
import { type ExchangeState, HANDLING } from './exchange-state.ts';
import type { HttpContext } from './http-context.ts';
import type { ReplySender } from './reply-sender.ts';

export interface ReplyFinisherOptions {
  readonly prepared: PreparedRoute;
  readonly context: HttpContext;
  readonly res: WireResponse;
  readonly request: AdmittedRequest;
  readonly state: ExchangeState;
  readonly sender: ReplySender;
  /** Returns the reply that tells of an error. */
  readonly problemOf: (error: unknown) => EncodedReply;
}

export class ReplyFinisher {
  /** Of a request with an idempotency key, until it is settled. */
  attempt: IdempotentAttempt | undefined;
  readonly #options: ReplyFinisherOptions;

  constructor(options: ReplyFinisherOptions) {
    this.#options = options;
  }

  /**
   * Takes the reply, in the turn that made it, so that the idempotency record joins the commit of what the request did.
   * `observed` resolves once everything that the handler of a GET has read is on disk.
   */
  finish(reply: Reply, observed?: Promise<void>): void {
    if (reply.kind === 'stream') this.#options.sender.openStream(reply);
    else if (reply.kind === 'deferred') this.#defer(reply);
    else if (reply.kind === 'waiting') this.#wait(reply);
    else if (reply.kind === 'file')
      this.#options.sender.sendFile(reply, observed, (error) => this.#options.problemOf(error));
    else this.#sendOnceCommitted(reply, observed);
  }

  #sendOnceCommitted(reply: PlainReply, observed: Promise<void> | undefined): void {
    let encoded: EncodedReply | Promise<EncodedReply>;
    let committed: Promise<void> | undefined;
    try {
      if (
        reply.kind === 'json' &&
        this.attempt === undefined &&
        !isShortJson(reply.value, MAX_REPLY_AT_ONCE_CHARS)
      )
        encoded = encodeInSlices(reply);
      else {
        encoded = this.#encode(reply);
        this.attempt?.settle(encoded);
      }
      committed = this.#options.prepared.isMutation ? this.#options.context.durable() : observed;
    } catch (error) {
      this.#options.sender.send(this.#options.problemOf(error));
      return;
    }
    if (committed === undefined && !(encoded instanceof Promise)) {
      this.#options.sender.send(encoded);
      return;
    }
    if (this.#options.state.phase.name !== 'deferred') this.#options.state.enter(HANDLING);
    Promise.all([encoded, committed]).then(
      ([ready]) => this.#options.sender.send(ready),
      (error: unknown) => this.#options.sender.send(this.#options.problemOf(error)),
    );
  }

  #encode(reply: PlainReply): EncodedReply {
    try {
      return encodeReply(reply);
    } catch (error) {
      return this.#options.problemOf(error);
    }
  }

  #defer({ value, failed }: DeferredReply): void {
    const { endsConnection } = this.#options.request;
    const { heartbeatMs } = this.#options.context;
    this.#options.state.enter(HANDLING); // registers the abort handler, without which the timer could outlive the client
    if (this.#options.state.phase.name !== 'gone') {
      const answer = new DeferredAnswer(
        this.#options.res,
        this.#options.request,
        heartbeatMs,
        endsConnection,
      );
      this.#options.state.enter({ name: 'deferred', answer, failed });
    }
    this.whilePending(value).then(
      (result) => this.finish(ok(result)),
      (error: unknown) => this.finish(this.#options.problemOf(error)),
    );
  }

  #wait({ accepted, reply }: WaitingReply): void {
    this.attempt?.settle(this.#encode(accepted));
    this.attempt = undefined;
    this.#options.state.enter(HANDLING);
    this.whilePending(reply).then(
      (value) => {
        this.finish(value, this.#options.context.durable()); // it may tell of what was read just now
      },
      (error: unknown) => this.finish(this.#options.problemOf(error)),
    );
  }

  /**
   * Resolves with the value. Until then the exchange is answered at once when its caller loses the right to it. With
   * `endsConnection` the connection ends with that answer, because a body may be on its way that nobody will read.
   */
  whilePending<T>(value: Promise<T>, { endsConnection = false } = {}): Promise<T> {
    const { action } = this.#options.prepared;
    const { principal: caller, home } = this.#options.request;
    const revoke = (error: AppError) => {
      if (endsConnection) this.#options.request.endsConnection = true;
      this.#revoke(error);
    };
    const pending = { caller, action, home, revoke };
    return whilePending(this.#options.context.open.pendingAnswers, pending, value);
  }

  /** Ends a deferred or waiting reply whose caller has lost the right to it. The rest is as if the client had left. */
  #revoke(error: AppError): void {
    if (this.#options.state.phase.name === 'gone') return;
    this.#options.sender.send(this.#options.problemOf(error));
    this.#options.state.leave();
  }
}
