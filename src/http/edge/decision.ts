/**
 * The decision about a request whose body has arrived: whether its caller still has the right to it, whether it was carried out before
 * under its idempotency key, in which turn it may begin, and what the handler answers. A decision knows neither the connection nor the
 * phases of the exchange: it returns the outcome, or a promise of it that never rejects.
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
import { hasPlace, leavePlace, takePlace, waitForPlace } from './answer-places.ts';
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
  /** Answers at once, because the caller has lost the right to the request. Its work may go on, and its outcome is dropped. */
  revoke(error: AppError): void;
}

type Decided = Outcome | Promise<Outcome>;

/** What the idempotency key of a request says: the reply to an earlier request, or an attempt; undefined when there is no key. */
type Claimed = { readonly kind: 'replay'; readonly reply: Reply } | IdempotentAttempt | undefined;
type Claim = () => Claimed;

/** Decides about a request with this body. */
export function decide(exchange: DecidedExchange, body: TakenBody): Decided {
  const { prepared, context, request } = exchange;
  const { route } = prepared;
  if (route.largeAnswer === true && context.answerPlaces.taken > 0 && !hasPlace(exchange))
    return decideInPlace(exchange, body);
  if (prepared.isStream && context.streamPermits !== undefined)
    return decideWithPermit(exchange, context.streamPermits, body);
  // Other workers may get a request with the same key at this moment, even if the requests have different homes.
  const isShared = prepared.sharesKeys && context.forwarding !== undefined;
  if (isShared && request.idempotencyKey !== undefined) return claimInSharedTurn(exchange, body);
  const claim = () => claimOf(exchange, body);
  const isAtOnce = route.prepare === undefined && route.sharedTurn !== true;
  return isAtOnce ? run(exchange, claim) : prepare(exchange, claim);
}

/**
 * Decides about a request whose handler reads the body as it arrives. If the caller loses the right to it before the outcome, the
 * connection ends with the refusal, because an unread body may still be arriving.
 */
export function decideWithContent(exchange: DecidedExchange, body: TakenBody): Promise<Outcome> {
  const deciding = async () => run(exchange, () => claimOf(exchange, body));
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
    outcome = await run(exchange, () => claimOf(exchange, body));
  } catch (error) {
    outcome = failed(exchange, error);
  }
  if (outcome.kind === 'stream') return { ...outcome, permit };
  permit?.[Symbol.dispose]();
  return outcome;
}

// ── Idempotency key ─────────────────────────────────────────────────────────────────────────────────────────────────────

function claimOf({ prepared, context, request }: DecidedExchange, body: TakenBody): Claimed {
  const claim = claimKey(prepared, context, request, body);
  if (claim?.kind !== 'replay') return claim;
  return { kind: 'replay', reply: prepared.route.resume?.(request, claim.reply) ?? claim.reply };
}

/** Claims the key in a shared turn. The rest is done after that turn, in which no other worker can commit anything. */
function claimInSharedTurn(exchange: DecidedExchange, body: TakenBody): Promise<Outcome> {
  return new Promise((resolve) => {
    exchange.context.store.decide(() => {
      try {
        const claimed = claimOf(exchange, body);
        setImmediate(() => resolve(prepare(exchange, () => claimed, attemptOf(claimed))));
      } catch (error) {
        resolve(failed(exchange, error));
      }
    });
  });
}

// ── Handler ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Prepares the request where its route asks for that, unless it is a repetition, and runs its handler. `held` is the attempt of a key
 * that was claimed before.
 */
function prepare(exchange: DecidedExchange, claim: Claim, held?: IdempotentAttempt): Decided {
  const { prepared, request } = exchange;
  if (prepared.route.prepare === undefined) return runInTurn(exchange, claim, held);
  let claimed: Claimed = held;
  try {
    renewCaller(exchange);
    claimed = request.idempotencyKey === undefined ? undefined : claim();
    const preparing = claimed?.kind === 'replay' ? undefined : prepared.route.prepare(request);
    if (preparing === undefined) return runInTurn(exchange, () => claimed, attemptOf(claimed));
    return whilePending(exchange, preparing).then(
      () => runInTurn(exchange, () => claimed, attemptOf(claimed)),
      (error: unknown) => failed(exchange, error, attemptOf(claimed)),
    );
  } catch (error) {
    return failed(exchange, error, attemptOf(claimed));
  }
}

/** Runs the handler, in a shared turn where its route asks for one. */
function runInTurn(exchange: DecidedExchange, claim: Claim, held: IdempotentAttempt | undefined): Decided {
  const { prepared, context } = exchange;
  if (prepared.route.sharedTurn !== true) return run(exchange, claim, held);
  return new Promise((resolve) => {
    context.store.decide(() => resolve(run(exchange, claim, held)));
  });
}

/** Runs the handler, unless the request is a repetition, and settles its reply in the turn that made it. */
function run(exchange: DecidedExchange, claim: Claim, held?: IdempotentAttempt): Decided {
  const { prepared, context, request } = exchange;
  const { route, action, isMutation } = prepared;
  let attempt = held; // freed also when the caller has lost the right since the claim
  let observed: Promise<void> | undefined;
  try {
    if (request.changesSeen !== context.open.callerChanges.count) renewCaller(exchange);
    const claimed = request.idempotencyKey === undefined ? undefined : claim();
    if (claimed?.kind === 'replay') return settle(exchange, claimed.reply);
    attempt = claimed;
    const isStranger = action !== undefined && request.principal === undefined;
    const handle = () =>
      isStranger && route.handleStranger ? route.handleStranger(request) : route.handle(request);
    let reply: Reply | Promise<Reply>;
    if (isMutation) reply = handle();
    else ({ result: reply, uncommitted: observed } = context.store.observe(handle));
    if (!(reply instanceof Promise)) return settle(exchange, reply, attempt, observed);
    if (route.largeAnswer === true) takePlace(exchange);
    return reply.then(
      (made) => settle(exchange, made, attempt, observed),
      (error: unknown) => failed(exchange, error, attempt, observed),
    );
  } catch (error) {
    return failed(exchange, error, attempt);
  }
}

function attemptOf(claimed: Claimed): IdempotentAttempt | undefined {
  return claimed?.kind === 'replay' ? undefined : claimed;
}

/** Throws when the caller has lost the right to the request since its admission: its body or its turn may have taken long to arrive. */
function renewCaller({ context, prepared, request }: DecidedExchange): void {
  const { callerChanges } = context.open;
  if (request.changesSeen !== callerChanges.count) callerChanges.renew(request, prepared.action);
}

// ── Outcome ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Returns the outcome of a reply. Called in the turn that made it, so that the idempotency record joins the commit of its writes.
 * `observed` resolves once everything that the handler of a GET has read is on disk.
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
  const reply = read.then(async (readReply) => {
    await waitForPlace(exchange, { isCarriedOut: true });
    return readReply();
  });
  return whilePending(exchange, reply).then(
    // The reply may contain data that was read only now.
    (made) => settle(exchange, made, undefined, exchange.context.durable()),
    (error: unknown) => failed(exchange, error, undefined, exchange.context.durable()),
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
