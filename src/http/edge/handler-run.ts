/**
 * Has the handler of one request make its reply, or gives the reply to an earlier request with the same idempotency key; in a
 * shared turn where the route asks for one.
 */
import type { Reply } from '../reply/reply.ts';
import type { EncodedReply } from '../reply/write-reply.ts';
import type { AdmittedRequest, PreparedRoute } from './admission.ts';
import { type ExchangeState, HANDLING } from './exchange-state.ts';
import type { HttpContext, StreamPermits } from './http-context.ts';
import { claimKey } from './key-claim.ts';
import type { ReplyFinisher } from './reply-finisher.ts';
import { NO_BODY, type TakenBody } from './taken-body.ts';

export interface HandlerRunOptions {
  readonly prepared: PreparedRoute;
  readonly context: HttpContext;
  readonly request: AdmittedRequest;
  readonly state: ExchangeState;
  readonly finisher: ReplyFinisher;
  /** Returns the reply that tells of an error. */
  readonly problemOf: (error: unknown) => EncodedReply;
}

export class HandlerRun {
  readonly #options: HandlerRunOptions;
  /** Resolves once everything that the handler of a GET has read is on disk. */
  #observed: Promise<void> | undefined;

  constructor(options: HandlerRunOptions) {
    this.#options = options;
  }

  /**
   * Whether other workers may get a request with the same key at this moment. A shared turn then decides which of them is carried
   * out, so that a key is good for one request, whatever homes those name that have it.
   */
  get claimsInSharedTurn(): boolean {
    const { prepared, context, request } = this.#options;
    return prepared.sharesKeys && request.idempotencyKey !== undefined && context.forwarding !== undefined;
  }

  /** Makes the reply and finishes it, now or later. */
  begin(body: TakenBody): void {
    const { context, prepared, state } = this.#options;
    const { streamPermits } = context;
    if (prepared.isStream && streamPermits !== undefined) void this.#openStream(streamPermits, body);
    else if (this.claimsInSharedTurn) {
      state.enter(HANDLING);
      context.decide(() => this.#claimAndCarryOut(body));
    } else this.#carryOut(() => this.#replay(body));
  }

  /** Returns the reply of a route without a shared turn. Throws, or rejects with, what refuses the request. */
  replyTo(body: TakenBody): Reply | Promise<Reply> {
    return this.#replayOrHandle(() => this.#replay(body));
  }

  /**
   * Resolves with the reply of a handler that reads the body as it arrives. When the caller loses the right to the request
   * meanwhile, it is answered at once, and reading the body fails.
   */
  replyToContent(): Promise<Reply> {
    const attempt = async () => this.replyTo(NO_BODY);
    return this.#options.finisher.whilePending(attempt(), { endsConnection: true });
  }

  /** Runs in the turn that made the reply, so that the idempotency record joins the commit of what the request did. */
  finish(reply: Reply): void {
    this.#options.finisher.finish(reply, this.#observed);
  }

  /** Opens an event stream when its workspace has a permit for it, which is held until the stream itself is counted. */
  async #openStream(permits: StreamPermits, body: TakenBody): Promise<void> {
    const { request, state, finisher, problemOf } = this.#options;
    state.enter(HANDLING);
    try {
      const taken = request.principal && permits.take(request.principal.workspaceId);
      using _permit = taken instanceof Promise ? await finisher.whilePending(taken) : taken;
      this.finish(await this.replyTo(body));
    } catch (error) {
      this.finish(problemOf(error));
    }
  }

  /** Claims the key in a shared turn. The rest is done after that turn, in which no other worker can commit anything. */
  #claimAndCarryOut(body: TakenBody): void {
    try {
      const replay = this.#replay(body);
      setImmediate(() => this.#carryOut(() => replay));
    } catch (error) {
      this.finish(this.#options.problemOf(error));
    }
  }

  /** Runs the handler, unless `replayOf` returns the reply to an earlier request with the same key. */
  #carryOut(replayOf: () => Reply | undefined): void {
    if (this.#options.prepared.route.prepare === undefined)
      this.#decide(() => this.#replayOrHandle(replayOf));
    else void this.#prepareAndDecide(replayOf);
  }

  /** A caller who loses the right to the request while it is prepared is answered at once. */
  async #prepareAndDecide(replayOf: () => Reply | undefined): Promise<void> {
    const { prepared, request, state, finisher, problemOf } = this.#options;
    const { route } = prepared;
    state.enter(HANDLING);
    try {
      this.#renewCaller();
      const replay = replayOf();
      const preparing = replay === undefined ? route.prepare?.(request) : undefined;
      if (preparing !== undefined) await finisher.whilePending(preparing);
      this.#decide(() => {
        this.#renewCaller();
        return replay ?? route.handle(request);
      });
    } catch (error) {
      this.finish(problemOf(error));
    }
  }

  /**
   * Runs what returns the reply and finishes the reply; both in a shared turn where the route asks for one, so that the idempotency
   * record joins its commit.
   */
  #decide(replyOf: () => Reply | Promise<Reply>): void {
    const { prepared, context, state } = this.#options;
    if (prepared.route.sharedTurn !== true) this.#run(replyOf);
    else {
      state.enter(HANDLING);
      context.decide(() => this.#run(replyOf));
    }
  }

  /** Runs what returns the reply, and finishes the reply. */
  #run(replyOf: () => Reply | Promise<Reply>): void {
    const { state, problemOf } = this.#options;
    let reply: Reply | Promise<Reply>;
    try {
      reply = replyOf();
    } catch (error) {
      reply = problemOf(error);
    }
    if (!(reply instanceof Promise)) {
      this.finish(reply);
      return;
    }
    state.enter(HANDLING);
    reply.then(
      (value) => this.finish(value),
      (error: unknown) => this.finish(problemOf(error)),
    );
  }

  #replayOrHandle(replayOf: () => Reply | undefined): Reply | Promise<Reply> {
    const { prepared, context, request } = this.#options;
    const { route, isMutation } = prepared;
    this.#renewCaller();
    const replay = replayOf();
    if (replay !== undefined) return replay;
    if (isMutation) return route.handle(request);
    const { result, uncommitted } = context.observe(() => route.handle(request));
    this.#observed = uncommitted;
    return result;
  }

  /**
   * Gives the request its caller as it is now: the body may have taken long to come, and so may the turn. Throws the refusal of a
   * caller who has lost the right to the request meanwhile.
   */
  #renewCaller(): void {
    const { prepared, context, request } = this.#options;
    context.open.callerChanges.renew(request, prepared.action);
  }

  /** Returns the reply to an earlier request with the same key; undefined when the request is to be carried out. */
  #replay(body: TakenBody): Reply | undefined {
    const { prepared, context, request, finisher } = this.#options;
    const claim = claimKey(prepared, context, request, body);
    if (claim?.kind === 'replay') return prepared.route.resume?.(request, claim.reply) ?? claim.reply;
    finisher.attempt = claim;
    return undefined;
  }
}
