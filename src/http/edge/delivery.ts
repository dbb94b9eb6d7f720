/** The delivery of what was decided: an outcome becomes the reply on the wire, once everything that it reports is on disk. */

import { MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import { isShortJson } from '#src/base/json/json-write.ts';
import { acceptsGzip, compress, isCompressible, MIN_COMPRESSED_BYTES } from '../reply/compress.ts';
import { DeferredAnswer } from '../reply/deferred-answer.ts';
import { openStream, writeStreamHead } from '../reply/event-stream.ts';
import { problemReply, toAppError } from '../reply/problem.ts';
import { type JsonReply, ok } from '../reply/reply.ts';
import { sendFile } from '../reply/send-file.ts';
import { completeReply, sendWeb } from '../reply/send-web.ts';
import {
  type EncodedReply,
  encodeInSlices,
  encodeReply,
  MAX_WHOLE_BODY_BYTES,
  writeInPieces,
  writeWhole,
} from '../reply/write-reply.ts';
import { leavePlace, waitForPlace } from './answer-places.ts';
import { BodyCharge, heldBytes, noRoomForReply } from './body-memory.ts';
import type { Outcome } from './decision.ts';
import { HANDLING, type OpenExchange, SENDING, STREAMING } from './exchange-phase.ts';
import { shownPathOf } from './key-claim.ts';

/** The outcomes of one kind. */
type Of<Kind extends Outcome['kind']> = Extract<Outcome, { readonly kind: Kind }>;

/** Delivers an outcome. If the client has left, the resources of the outcome are released. */
export function deliver(exchange: OpenExchange, outcome: Outcome): void {
  if (outcome.kind === 'plain') {
    sendOnceCommitted(exchange, outcome);
    return;
  }
  leavePlace(exchange.request); // what follows is made later, or read piece by piece
  if (outcome.kind === 'later') sendLater(exchange, outcome);
  else if (outcome.kind === 'body') sendBody(exchange, outcome);
  else openEventStream(exchange, outcome);
}

function sendOnceCommitted(exchange: OpenExchange, { reply, committed }: Of<'plain'>): void {
  let encoded: EncodedReply | Promise<EncodedReply>;
  try {
    const waits =
      committed !== undefined && reply.kind === 'bytes' && reply.bytes.length > MAX_WHOLE_BODY_BYTES;
    if (waits) encoded = charged(exchange, reply);
    else if (reply.kind !== 'json') encoded = reply;
    else if (isShortJson(reply.value, MAX_SIZE_AT_ONCE)) encoded = encodeReply(reply);
    else encoded = encodeInPlace(exchange, reply);
  } catch (error) {
    encoded = exchange.problem(error);
  }
  if (committed === undefined && !(encoded instanceof Promise)) {
    send(exchange, encoded);
    return;
  }
  if (exchange.phase.name !== 'deferred') exchange.enter(HANDLING);
  // A commit may wait for room on the disk. Meanwhile other requests make their answers.
  if (encoded instanceof Promise) encoded = encoded.then((made) => finished(exchange, made));
  else if (exchange.request.answerPlace !== undefined) leavePlace(exchange.request);
  Promise.all([encoded, committed]).then(
    ([ready]) => send(exchange, ready),
    (error: unknown) => send(exchange, exchange.problem(error)),
  );
}

/** Charges the memory of an answer that was made, and gives its place back. */
function finished(exchange: OpenExchange, reply: EncodedReply): EncodedReply {
  const kept = charged(exchange, reply);
  leavePlace(exchange.request);
  return kept;
}

/** Encodes a large value once there is a place for its JSON. */
async function encodeInPlace(exchange: OpenExchange, reply: JsonReply): Promise<EncodedReply> {
  await waitForPlace(exchange, { isCarriedOut: true });
  return encodeInSlices(reply, exchange.request.principal?.workspaceId);
}

function sendLater(exchange: OpenExchange, { outcome, failed }: Of<'later'>): void {
  const { res, request, context } = exchange;
  exchange.enter(HANDLING); // registers the abort handler, without which the timer could outlive the client
  if (exchange.phase.name !== 'gone') {
    const answer = new DeferredAnswer(res, request, context.heartbeatMs, request.endsConnection);
    exchange.enter({ name: 'deferred', answer, failed });
  }
  unawaited(
    outcome.then((decided) => deliver(exchange, decided)),
    'exchange: a deferred reply',
  );
}

/**
 * Sends a reply at once, unless the client has left. A large reply is refused when there is no room to keep it until the client
 * has read it.
 */
export function send(exchange: OpenExchange, encoded: EncodedReply): void {
  const { phase, request } = exchange;
  const isLarge = encoded.kind === 'bytes' && encoded.bytes.length > MAX_WHOLE_BODY_BYTES;
  const reply = isLarge ? charged(exchange, encoded) : encoded;
  if (request.answerPlace !== undefined) leavePlace(request);
  report(exchange, reply.status, reply.kind === 'bytes' ? reply.bytes.length : 0, phase.name === 'deferred');
  if (phase.name === 'deferred') {
    phase.answer.stop();
    if (phase.answer.hasBegun && reply.kind === 'bytes') {
      exchange.enter(SENDING);
      phase.answer.end(reply.bytes, () => exchange.conclude());
      return;
    }
  }
  const isShort = reply.kind === 'empty' || reply.bytes.length < MIN_COMPRESSED_BYTES;
  const mayCompress = !isShort && phase.name !== 'gone' && !request.endsConnection;
  if (mayCompress && isCompressible(reply) && acceptsGzip(acceptedEncodings(exchange))) {
    exchange.enter(HANDLING);
    unawaited(
      compress(reply, request.principal?.workspaceId).then((sent) =>
        write(exchange, charged(exchange, sent)),
      ),
      'exchange: the compression of a reply',
    );
  } else write(exchange, reply);
}

/** Charges the memory of a large reply, and returns the reply, or its refusal when there is no room. */
function charged(exchange: OpenExchange, reply: EncodedReply): EncodedReply {
  const { context, phase, prepared, request } = exchange;
  if (reply.kind === 'empty' || reply.shared !== undefined) return reply;
  if (reply.bytes.length <= MAX_WHOLE_BODY_BYTES) return reply;
  if (request.headOnly || phase.name === 'gone') return reply;
  request.answerCharge?.release(); // of the same reply before it was compressed
  request.answerCharge = BodyCharge.of(request, context.answers);
  const hasRoom = request.answerCharge.take(heldBytes(reply.bytes));
  return hasRoom ? reply : exchange.problem(noRoomForReply(prepared.isMutation));
}

/** Returns the `Accept-Encoding` header, which is read when it is needed or when `req` is about to be reused. */
function acceptedEncodings({ phase, request }: OpenExchange): string {
  return phase.name === 'callback' ? phase.req.getHeader('accept-encoding') : request.acceptedEncodings;
}

function write(exchange: OpenExchange, reply: EncodedReply): void {
  const { res, request } = exchange;
  const { name } = exchange.phase;
  if (name === 'gone') {
    exchange.release();
    return;
  }
  const { requestId, allowedOrigin, headOnly, endsConnection } = request;
  const isLarge = reply.kind === 'bytes' && reply.bytes.length > MAX_WHOLE_BODY_BYTES;
  const options = { requestId, allowedOrigin, headOnly, close: endsConnection };
  if (isLarge && !headOnly) {
    exchange.enter(SENDING);
    writeInPieces(res, reply, options, () => exchange.conclude());
    return;
  }
  exchange.conclude();
  if (name === 'callback')
    writeWhole(res, reply, options); // uWebSockets.js corks its callbacks by itself
  else res.cork(() => writeWhole(res, reply, options));
}

/** Sends a body that is read while it is sent: a file, once everything that the handler has read is on disk, or a web response. */
function sendBody(exchange: OpenExchange, { reply, committed }: Of<'body'>): void {
  const { res, request } = exchange;
  exchange.enter(HANDLING);
  const failed = (error: unknown) => send(exchange, exchange.problem(error));
  if (reply.kind === 'web' && request.endsConnection) {
    completeReply(reply.response).then((whole) => send(exchange, whole), failed); // a stream cannot end a connection
    return;
  }
  const charge = BodyCharge.of(request, exchange.context.answers);
  let hasBegun = false;
  const begin = (status: number, bytes: number) => {
    hasBegun = true;
    report(exchange, status, bytes, true);
    exchange.enter(SENDING);
    return exchange.phase.name !== 'gone';
  };
  const sending =
    reply.kind === 'file'
      ? sendFile(res, reply, request, { ready: committed, begin, charge })
      : sendWeb(res, reply, request, begin);
  sending.then(
    () => exchange.conclude(),
    (error: unknown) => {
      if (hasBegun && exchange.phase.name === 'gone') return exchange.conclude();
      if (!hasBegun) return failed(error);
      exchange.conclude();
      res.close(); // so that nobody takes the body for complete
    },
  );
}

/** Opens an event stream, which owns the response from then on. For HEAD only its head is written. */
function openEventStream(exchange: OpenExchange, { open, permit }: Of<'stream'>): void {
  using _permit = permit; // the stream itself is counted at the end
  const { res, request, prepared, context } = exchange;
  exchange.enter(HANDLING);
  exchange.release();
  if (exchange.phase.name === 'gone') return;
  if (request.headOnly) {
    exchange.conclude();
    writeStreamHead(res, request);
    return;
  }
  report(exchange, 200, 0, true);
  exchange.enter(STREAMING);
  const { requestId, principal, holder, home } = request;
  const owner = { caller: principal ?? holder, action: prepared.action, home };
  const failed = (err: unknown) =>
    context.log.error({ err, requestId, route: prepared.route.path }, 'an event stream could not be opened');
  openStream(res, request, { open, owner, streams: context.open.streams, failed });
}

/** Returns the reply that describes an error: after the beginning of a deferred reply its body alone, else a problem document. */
export function errorReply(
  { prepared, context, request, phase }: OpenExchange,
  error: unknown,
): EncodedReply {
  // The path is rebuilt, because `req` is gone by now.
  const where = { requestId: request.requestId, instance: shownPathOf(prepared, request) };
  const problem = toAppError(error, context.log, where);
  if (phase.name === 'deferred' && phase.answer.hasBegun) return encodeReply(ok(phase.failed(problem)));
  return problemReply(problem, where);
}

/** Logs and counts the request, when its status is certain. */
function report(exchange: OpenExchange, status: number, bytes: number, mayTakeLong: boolean): void {
  const { request, context } = exchange;
  const { route, durations } = exchange.prepared;
  const ms = performance.now() - request.beganAtMs;
  durations?.observe(status, ms / 1000);
  request.span?.end({
    attributes: { 'http.response.status_code': status },
    error: status >= 500 ? String(status) : undefined,
  });
  const hasLeft = exchange.phase.name === 'gone';
  context.requestLog.replied(route, request, { status, bytes, ms, mayTakeLong, hasLeft });
}
