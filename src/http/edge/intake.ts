/**
 * The intake of a request: its body is read, parsed and checked, when it is the turn of the caller's workspace. Then the exchange gets
 * the body, and forwards the request or decides about it.
 */
import { AppError } from '#src/base/errors/errors.ts';
import type { WireRequest } from '../wire-exchange.ts';
import { BodyCharge } from './body-memory.ts';
import { HANDLING, type OpenExchange, RECEIVING } from './exchange-phase.ts';
import { readBody } from './request-body.ts';
import { requireJson } from './request-head.ts';
import { NO_BODY, type TakenBody, takeBody } from './taken-body.ts';

/** The exchange of the request, as its intake sees it. */
export interface ReceivingExchange extends OpenExchange {
  /** Goes on with the request and its body. `bytes` is the body before it was parsed. */
  takenIn(body: TakenBody, bytes: Uint8Array): void;
  /** Answers a request whose handler will not run. */
  refuse(error: unknown): void;
}

export const NO_BYTES = new Uint8Array(0);

/** Takes in a request without a body that has to wait: for the next turn, or for a turn of its workspace. */
export function takeInLater(exchange: ReceivingExchange): void {
  if (exchange.request.endsConnection) takenInNextTurn(exchange, NO_BODY, NO_BYTES);
  else takeTurn(exchange, () => exchange.takenIn(NO_BODY, NO_BYTES));
}

/** Takes in a request with its body, whose memory is charged to the workspace of the caller until the exchange is over. */
export function takeInWithBody(exchange: ReceivingExchange, req: WireRequest): void {
  const { prepared, context, res, request } = exchange;
  const charge = (bytes: number) => {
    request.bodyCharge ??= BodyCharge.of(request, context.bodies);
    return request.bodyCharge.take(bytes);
  };
  const announcedBytes = Number(req.getHeader('content-length')) || 0;
  exchange.enter(RECEIVING);
  readBody(res, { limitBytes: prepared.limitBytes, announcedBytes, charge }, (bytes, isEnd) => {
    request.beganAtMs = performance.now(); // the time in which the client sent its body is not the server's
    if (!isEnd) request.endsConnection = true;
    // A request that another worker carries out takes its turn there.
    const workspaceId = request.elsewhere === undefined ? request.principal?.workspaceId : undefined;
    if (bytes instanceof AppError) exchange.refuse(bytes);
    else if (context.turns.isAlone(workspaceId)) takeInBytes(exchange, bytes);
    else takeTurn(exchange, () => takeInBytes(exchange, bytes));
  });
}

function takeInBytes(exchange: ReceivingExchange, bytes: Buffer): void {
  const { prepared, request } = exchange;
  try {
    const isAbsent = request.uncheckedType !== undefined && bytes.byteLength === 0;
    if (request.uncheckedType !== undefined && !isAbsent) requireJson(request.uncheckedType);
    const taken = isAbsent
      ? NO_BODY
      : takeBody(bytes, prepared.checkBody, request.idempotencyKey, request.principal?.workspaceId);
    if (taken instanceof Promise) {
      exchange.enter(HANDLING);
      taken.then(
        (whole) => takenInNextTurn(exchange, whole, bytes),
        (error: unknown) => exchange.refuse(error),
      );
    } else if (request.endsConnection) takenInNextTurn(exchange, taken, bytes);
    else exchange.takenIn(taken, bytes);
  } catch (error) {
    exchange.refuse(error);
  }
}

/** Goes on in the next turn and ends the connection after the request, for the reason that `HttpExchange.refuse` gives. */
function takenInNextTurn(exchange: ReceivingExchange, body: TakenBody, bytes: Uint8Array): void {
  exchange.enter(HANDLING);
  setImmediate(() => exchange.takenIn(body, bytes));
}

/** Does the work of a request when it is the turn of its workspace, unless the client leaves before. */
function takeTurn(exchange: ReceivingExchange, work: () => void): void {
  const { request, context } = exchange;
  const isDone = context.turns.take(request.principal!.workspaceId, () => {
    if (exchange.phase.name !== 'gone') work();
  });
  if (!isDone) exchange.enter(RECEIVING);
}
