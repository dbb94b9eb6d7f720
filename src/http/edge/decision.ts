/**
 * The decision about a request whose body has arrived. It checks the right of the caller again, looks for an earlier request with the
 * same idempotency key, chooses the turn in which the request may begin, and calls the handler. A decision does not know the connection
 * or the phases of the exchange: it returns the outcome, or a promise of the outcome that never rejects.
 *
 * A request that has claimed its key holds the attempt until its reply is settled, which stores the reply or frees the key.
 */
import type { AppError } from '#src/base/errors/errors.ts';
import type { IdempotentAttempt } from '../idempotency/idempotency.ts';
import { whilePending as keptWhilePending } from '../reply/deferred-answer.ts';
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
import { type EncodedReply, encodeReply } from '../reply/write-reply.ts';
import { hasPlace, leavePlace, takeAnswerPlace, waitForPlace } from './answer-places.ts';
import type { OpenExchange } from './exchange-phase.ts';
import type { StreamPermits } from './http-context.ts';
import { claimKey } from './key-claim.ts';
import type { TakenBody } from './taken-body.ts';

/** What was decided. `committed` resolves once everything that the reply reports is on disk; undefined when nothing is waiting. */
export type Outcome =
  | { readonly kind: 'plain'; readonly reply: PlainReply; readonly committed: Promise<void> | undefined }
  /** A body that is read while it is sent. */
  | {
      readonly kind: 'body';
      readonly reply: FileReply | WebReply;
      readonly committed: Promise<void> | undefined;
    }
  /** An event stream. The permit is given back once the stream itself is counted. */
  | { readonly kind: 'stream'; readonly open: StreamReply['open']; readonly permit: Disposable | undefined }
  /** An outcome that may take minutes, during which white space is sent. */
  | { readonly kind: 'later'; readonly outcome: Promise<Outcome>; readonly failed: DeferredReply['failed'] };

/** The exchange of the request, as its decision sees it. */
export interface DecidedExchange extends Pick<OpenExchange, 'prepared' | 'context' | 'request' | 'problem'> {
  /**
   * Answers at once, because the caller has lost the right to the request. The work of the request may go on, and its outcome is
   * dropped.
   */
  revoke(error: AppError): void;
}

type Decided = Outcome | Promise<Outcome>;

/** The attempt of a request that has claimed its idempotency key; undefined for a request without a key. */
type Attempt = IdempotentAttempt | undefined;

/** The next step of a request that has claimed its key, or has none. */
type Step = (exchange: DecidedExchange, attempt: Attempt) => Decided;

/** Decides about a request with this body. */
export function decide(exchange: DecidedExchange, body: TakenBody): Decided {
  const { prepared, context, request } = exchange;
  const { route } = prepared;
  if (route.largeAnswer === true && context.answerPlaces.taken > 0 && !hasPlace(exchange))
    return decideInPlace(exchange, body);
  if (prepared.isStream && context.streamPermits !== undefined)
    return decideWithPermit(exchange, context.streamPermits, body);
  const isShared = route.sharedTurn === true;
  const begin = route.prepare !== undefined ? prepare : isShared ? handleInSharedTurn : handle;
  if (request.idempotencyKey === undefined) return begin(exchange, undefined);
  // Other workers may get a request with the same key at this moment, even if the requests have different homes.
  if (prepared.sharesKeys && context.forwarding !== undefined)
    return claimInSharedTurn(exchange, body, begin);
  if (begin !== handleInSharedTurn) return claim(exchange, body, begin);
  return inSharedTurn(exchange, () => claim(exchange, body, handle));
}

/**
 * Decides about a request whose handler reads the body as it arrives. If the caller loses the right to it before the outcome, the
 * connection ends with the refusal, because an unread body may still be arriving.
 */
export function decideWithContent(exchange: DecidedExchange, body: TakenBody): Promise<Outcome> {
  const deciding = async () => claim(exchange, body, handle);
  return whilePending(exchange, deciding(), { endsConnection: true });
}

/** Decides about a request with a large answer once there is a place for it. */
function decideInPlace(exchange: DecidedExchange, body: TakenBody): Promise<Outcome> {
  return whilePending(exchange, waitForPlace(exchange)).then(
    () => decide(exchange, body),
    (error: unknown) => failed(exchange, error),
  );
}

/** Opens an event stream once its workspace has a permit for it. */
async function decideWithPermit(
  exchange: DecidedExchange,
  permits: StreamPermits,
  body: TakenBody,
): Promise<Outcome> {
  let permit: Disposable | undefined;
  let outcome: Outcome;
  try {
    const { principal } = exchange.request;
    const taken = principal && permits.take(principal.workspaceId);
    permit = taken instanceof Promise ? await whilePending(exchange, taken) : taken;
    outcome = await claim(exchange, body, handle);
  } catch (error) {
    outcome = failed(exchange, error);
  }
  if (outcome.kind === 'stream') return { ...outcome, permit };
  permit?.[Symbol.dispose]();
  return outcome;
}

// ── Idempotency key ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** Claims the key of the request and goes on with `then`, unless the request is a repetition. */
function claim(exchange: DecidedExchange, body: TakenBody, then: Step): Decided {
  const { prepared, context, request } = exchange;
  let claimed: ReturnType<typeof claimKey>;
  try {
    renewCaller(exchange);
    claimed = claimKey(prepared, context, request, body);
    if (claimed?.kind === 'replay') {
      const { reply } = claimed;
      return settle(exchange, prepared.route.resume?.(request, reply) ?? reply);
    }
  } catch (error) {
    return failed(exchange, error);
  }
  return then(exchange, claimed);
}

/** Claims the key in a shared turn. The rest is done after that turn, in which no other worker can commit anything. */
function claimInSharedTurn(exchange: DecidedExchange, body: TakenBody, then: Step): Promise<Outcome> {
  const afterwards: Step = (_, attempt) => inOwnTurn(() => then(exchange, attempt));
  return inSharedTurn(exchange, () => claim(exchange, body, afterwards));
}

function inSharedTurn({ context }: DecidedExchange, decision: () => Decided): Promise<Outcome> {
  return new Promise((resolve) => {
    context.store.decide(() => resolve(decision()));
  });
}

// ── Handler ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Prepares the request as its route asks for, and runs its handler. */
function prepare(exchange: DecidedExchange, attempt: Attempt): Decided {
  const { prepared, context, request } = exchange;
  const { route } = prepared;
  const goOn = route.sharedTurn === true ? handleInSharedTurn : handle;
  try {
    if (request.changesSeen !== context.open.callerChanges.count) renewCaller(exchange);
    const preparing = route.prepare?.(request);
    if (preparing !== undefined)
      return whilePending(exchange, preparing).then(
        () => goOn(exchange, attempt),
        (error: unknown) => failed(exchange, error, attempt),
      );
  } catch (error) {
    return failed(exchange, error, attempt);
  }
  return goOn(exchange, attempt);
}

function handleInSharedTurn(exchange: DecidedExchange, attempt: Attempt): Promise<Outcome> {
  return new Promise((resolve) => {
    exchange.context.store.decide(() => resolve(handle(exchange, attempt)));
  });
}

/** Runs the handler, and settles its reply in the turn that made it. The key is free again when the caller has lost the right. */
function handle(exchange: DecidedExchange, attempt: Attempt): Decided {
  const { prepared, context, request } = exchange;
  const { route, action, isMutation } = prepared;
  let observed: Promise<void> | undefined;
  try {
    if (request.changesSeen !== context.open.callerChanges.count) renewCaller(exchange);
    const isStranger = action !== undefined && request.principal === undefined;
    const answer = (isStranger ? route.handleStranger : undefined) ?? route.handle;
    let reply: Reply | Promise<Reply>;
    if (isMutation) reply = answer(request);
    else ({ result: reply, uncommitted: observed } = context.store.observe(answer, request));
    if (!(reply instanceof Promise)) return settle(exchange, reply, attempt, observed);
    if (route.largeAnswer === true) takeAnswerPlace(exchange);
    return reply.then(
      (made) => settle(exchange, made, attempt, observed),
      (error: unknown) => failed(exchange, error, attempt, observed),
    );
  } catch (error) {
    return failed(exchange, error, attempt);
  }
}

/** Throws when the caller has lost the right to the request since its admission: its body or its turn may have taken long to arrive. */
function renewCaller({ context, prepared, request }: DecidedExchange): void {
  const { callerChanges } = context.open;
  if (request.changesSeen !== callerChanges.count) callerChanges.renew(request, prepared.action);
}

// ── Outcome ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Returns the outcome of a reply. Called in the turn that made it, so that the idempotency record joins the commit of its writes.
 * `observed` resolves once everything that the handler of a GET has read before its first wait is on disk. Pages wait for what they read
 * later (`slicedListing`).
 */
function settle(
  exchange: DecidedExchange,
  reply: PlainReply,
  attempt?: IdempotentAttempt,
  observed?: Promise<void>,
): Outcome;
function settle(
  exchange: DecidedExchange,
  reply: Reply,
  attempt?: IdempotentAttempt,
  observed?: Promise<void>,
): Decided;
function settle(
  exchange: DecidedExchange,
  reply: Reply,
  attempt?: IdempotentAttempt,
  observed?: Promise<void>,
): Decided {
  if (reply.kind === 'stream') return { kind: 'stream', open: reply.open, permit: undefined };
  if (reply.kind === 'deferred') return defer(exchange, reply, attempt);
  if (reply.kind === 'waiting') return wait(exchange, reply, attempt);
  if (reply.kind === 'file' || reply.kind === 'web') return { kind: 'body', reply, committed: observed };
  try {
    const settled = attempt === undefined ? reply : store(exchange, reply, attempt);
    const committed = exchange.prepared.isMutation ? exchange.context.durable() : observed;
    return { kind: 'plain', reply: settled, committed };
  } catch (error) {
    return { kind: 'plain', reply: exchange.problem(error), committed: undefined };
  }
}

/** Stores a reply under the key of the request, or frees the key when nothing was done. */
function store(exchange: DecidedExchange, reply: PlainReply, attempt: IdempotentAttempt): EncodedReply {
  let encoded: EncodedReply;
  try {
    encoded = encodeReply(reply);
  } catch (error) {
    encoded = exchange.problem(error);
  }
  attempt.settle(encoded);
  return encoded;
}

function failed(
  exchange: DecidedExchange,
  error: unknown,
  attempt?: IdempotentAttempt,
  observed?: Promise<void>,
): Outcome {
  return settle(exchange, exchange.problem(error), attempt, observed);
}

function defer(
  exchange: DecidedExchange,
  reply: DeferredReply,
  attempt: IdempotentAttempt | undefined,
): Outcome {
  const outcome = whilePending(exchange, reply.value).then(
    (result) => settle(exchange, ok(result), attempt),
    (error: unknown) => failed(exchange, error, attempt),
  );
  return { kind: 'later', outcome, failed: reply.failed };
}

function wait(
  exchange: DecidedExchange,
  { accepted, read }: WaitingReply,
  attempt: IdempotentAttempt | undefined,
): Promise<Outcome> {
  if (attempt !== undefined) store(exchange, accepted, attempt);
  leavePlace(exchange.request); // the wait may take minutes
  // Each reply is made in a turn of its own. A thousand clients may wait for one run: the memory of a large reply is charged
  // before the next reply is made.
  const reply = read.then(inOwnTurn);
  return whilePending(exchange, reply).then(
    // The reply may contain data that was read only now.
    (made) => settle(exchange, made, undefined, exchange.context.durable()),
    (error: unknown) => failed(exchange, error, undefined, exchange.context.durable()),
  );
}

/** Resolves with the result of `work` in a later turn. */
function inOwnTurn<T>(work: () => T | Promise<T>): Promise<T> {
  return new Promise((resolve, reject) =>
    setImmediate(() => {
      try {
        resolve(work());
      } catch (error) {
        reject(error);
      }
    }),
  );
}

/** Resolves with the value. If the caller loses the right to the request before that, the exchange is answered at once. */
function whilePending<T>(
  exchange: DecidedExchange,
  value: Promise<T>,
  { endsConnection = false } = {},
): Promise<T> {
  const { prepared, context, request } = exchange;
  const { principal: caller, home } = request;
  const revoke = (error: AppError) => {
    if (endsConnection) request.endsConnection = true;
    exchange.revoke(error);
  };
  return keptWhilePending(
    context.open.pendingAnswers,
    { caller, action: prepared.action, home, revoke },
    value,
  );
}
