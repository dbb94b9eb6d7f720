/**
 * An `HttpExchange` takes one request to its one reply. Three parts do the work: the intake reads the body (`intake.ts`), the decision
 * finds the outcome (`decision.ts`), the delivery sends it (`delivery.ts`). The exchange is always in one phase. When the client leaves,
 * it releases the resources of that phase:
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
import { unawaited } from '#src/base/async/unawaited.ts';
import type { AppError } from '#src/base/errors/errors.ts';
import type { Home } from '#src/runtime/homes/slots.ts';
import {
  type ForwardedEnd,
  ForwardedExchange,
  forwardedHead,
  type HeadWithoutSlot,
} from '../peer/forwarded-exchange.ts';
import type { EncodedReply } from '../reply/write-reply.ts';
import type { WireRequest, WireResponse } from '../wire-exchange.ts';
import { type AdmittedRequest, admitRequest, type PreparedRoute } from './admission.ts';
import { BodyCharge } from './body-memory.ts';
import { BodyStream } from './body-stream.ts';
import { type DecidedExchange, decide, decideWithContent } from './decision.ts';
import { deliver, errorReply, send } from './delivery.ts';
import { GONE, HANDLING, OVER, type Phase, RECEIVING, STREAMING } from './exchange-phase.ts';
import type { HttpContext } from './http-context.ts';
import { NO_BYTES, type ReceivingExchange, takeInLater, takeInWithBody } from './intake.ts';
import type { InFlightRequest } from './open-requests.ts';
import { findHome } from './request-home.ts';
import { NO_BODY, type TakenBody } from './taken-body.ts';

export class HttpExchange implements InFlightRequest, ReceivingExchange, DecidedExchange, ForwardedEnd {
  readonly prepared: PreparedRoute;
  readonly context: HttpContext;
  readonly res: WireResponse;
  readonly request: AdmittedRequest;
  phase: Phase;
  /**
   * The head to forward. Set for a request that another worker carries out, and in a cluster for every request whose body names
   * its home.
   */
  #forwardedHead: HeadWithoutSlot | undefined;

  /** uWebSockets.js reuses `req` when its callback returns. */
  constructor(
    prepared: PreparedRoute,
    context: HttpContext,
    res: WireResponse,
    req: WireRequest,
    request: AdmittedRequest,
  ) {
    this.prepared = prepared;
    this.context = context;
    this.res = res;
    this.request = request;
    this.phase = { name: 'callback', req };
  }

  // ── Phases ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

  enter(phase: Phase): void {
    const before = this.phase;
    if (before.name === 'gone') return;
    this.phase = phase;
    if (before.name !== 'callback') return;
    this.request.acceptedEncodings = before.req.getHeader('accept-encoding');
    this.context.open.inFlight.add(this);
    this.res.onAborted(() => this.#abandon());
  }

  /** Releases the resources of the phase: the client has left. A handler that is at work keeps its place in `inFlight`. */
  #abandon(): void {
    const phase = this.phase;
    this.#leave();
    if (phase.name === 'receiving' || phase.name === 'sending') this.release();
    else if (phase.name === 'deferred') phase.answer.stop();
    else if (phase.name === 'forwarded') {
      this.release();
      phase.exchange.abandon();
    }
  }

  /** Continues as if the client had left. */
  #leave(): void {
    this.phase = GONE;
    this.request.abandon();
  }

  conclude(): void {
    if (this.phase.name !== 'callback') this.release();
    this.phase = OVER;
  }

  release(): void {
    this.context.open.inFlight.delete(this);
    this.request.bodyCharge?.release();
    this.request.answerCharge?.release();
  }

  /** The notebook, conversation or workspace of the request; undefined until it is known, and when any worker may answer it. */
  get home(): Home | undefined {
    return this.request.home;
  }

  // ── Intake ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Takes the request. Called once, within the callback of uWebSockets.js. */
  receive(req: WireRequest): void {
    const { prepared, context, request, res } = this;
    context.open.count++;
    let expectsBody: boolean;
    try {
      expectsBody = admitRequest(request, prepared, context, res, req);
    } catch (error) {
      this.refuse(error);
      return;
    }
    const { takesBytes, homeInBody } = prepared.route;
    const isElsewhere = request.elsewhere !== undefined;
    if (isElsewhere || (homeInBody === true && context.forwarding !== undefined)) {
      const address = context.clientAddress(res, req); // the home does not know how the request has come
      this.#forwardedHead = forwardedHead(request, prepared, address, req);
      if (takesBytes === true) {
        this.#forward(this.#forwardedHead, NO_BODY, NO_BYTES);
        return;
      }
    }
    if (takesBytes === true) unawaited(this.#takeContent(expectsBody), 'exchange: a request with content');
    else if (expectsBody) takeInWithBody(this, req);
    else {
      const workspaceId = isElsewhere ? undefined : request.principal?.workspaceId;
      const isAtOnce = !request.endsConnection && context.turns.isAlone(workspaceId);
      if (isAtOnce) this.takenIn(NO_BODY, NO_BYTES);
      else takeInLater(this);
    }
  }

  /**
   * Answers a request whose handler will not run. If the connection must end, the answer is sent in the next turn: in this turn
   * uWebSockets.js would parse the bytes after the request and not end the connection. While an answer is pending, uWebSockets.js
   * ends the connection at the first byte of another request.
   */
  refuse(error: unknown): void {
    const reply = this.problem(error);
    if (this.request.endsConnection) {
      this.enter(RECEIVING);
      setImmediate(() => send(this, reply));
    } else send(this, reply);
  }

  /** Lets the handler read the body as it arrives. The rest of the body is read before the reply is sent. */
  async #takeContent(expectsBody: boolean): Promise<void> {
    const { prepared, request, res } = this;
    let content: BodyStream | undefined;
    if (expectsBody) {
      request.bodyCharge = BodyCharge.of(request, this.context.bodies);
      content = new BodyStream(res, prepared.limitBytes, request.bodyCharge);
      request.content = content;
      request.signal.addEventListener('abort', () => content?.abandon());
    }
    this.enter(HANDLING);
    const outcome = await decideWithContent(this, NO_BODY);
    if ((await content?.discard()) === false) request.endsConnection = true;
    if (request.endsConnection) await nextTurn(); // for the reason that `refuse` gives
    deliver(this, outcome);
  }

  // ── Decision ────────────────────────────────────────────────────────────────────────────────────────────────────────────

  takenIn(body: TakenBody, bytes: Uint8Array): void {
    const { prepared, context, request } = this;
    request.body = body.value;
    if (this.#forwardedHead !== undefined) {
      try {
        if (prepared.route.homeInBody === true) findHome(request, prepared, context.forwarding!);
      } catch (error) {
        this.refuse(error);
        return;
      }
      if (request.elsewhere !== undefined) {
        this.#forward(this.#forwardedHead, body, bytes);
        return;
      }
    }
    const outcome = decide(this, body);
    if (!(outcome instanceof Promise)) {
      deliver(this, outcome);
      return;
    }
    this.enter(HANDLING);
    unawaited(
      outcome.then((decided) => deliver(this, decided)),
      'exchange: the decision about a request',
    );
  }

  problem(error: unknown): EncodedReply {
    return errorReply(this, error);
  }

  revoke(error: AppError): void {
    if (this.phase.name === 'gone') return;
    send(this, this.problem(error));
    this.#leave();
  }

  // ── Another worker ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Lets the worker that is the request's home carry it out. `body` is used if this worker becomes
   * the home in the meantime.
   */
  #forward(head: HeadWithoutSlot, body: TakenBody, bytes: Uint8Array): void {
    const { prepared, context, request, res } = this;
    const charge = request.bodyCharge ?? BodyCharge.of(request, context.bodies);
    const exchange = new ForwardedExchange({
      head: { ...head, slot: request.elsewhere! },
      bytes,
      end: this,
      carryOutHere: () => {
        this.#forwardedHead = undefined;
        request.elsewhere = undefined;
        this.enter(HANDLING);
        this.takenIn(body, bytes);
      },
      res,
      limitBytes: prepared.limitBytes,
      charge,
      forwarding: context.forwarding!,
      mirrored: context.open.mirrored,
    });
    request.bodyCharge ??= charge;
    this.enter({ name: 'forwarded', exchange });
    // The client has left while its body was read. Nothing was done yet, and no answer is needed.
    if (this.phase.name === 'gone') this.release();
    else exchange.begin();
  }

  /** Notes that uWebSockets.js is about to get the other worker's whole reply, or has got its last byte. */
  forwardedReplySent(): void {
    this.conclude();
  }

  /** Notes that an event stream of this worker, the mirror of another worker's, owns the response from now on. */
  forwardedStreamOpened(): void {
    this.enter(STREAMING);
    this.release();
  }

  /** Answers a request that the other worker did not answer. */
  forwardedRequestFailed(error: AppError, endsConnection: boolean): void {
    if (endsConnection) this.request.endsConnection = true;
    this.refuse(error);
  }
}
