/**
 * From a uWebSockets.js request to its one reply. A `Connection` copies what the handler needs, waits for the body, runs
 * the handler, waits for the commit of a mutation, and writes the answer: in one piece, or as fast as the client takes it
 * when it is large, or late (late-answer.ts). An answer to a client that has left is dropped; the work behind it is
 * finished all the same.
 *
 * Order of refusals: draining, framing, caller, path, origin, idempotency key, query, media type, size, JSON, schema.
 * Nothing of a request that may not be made is read further.
 *
 * A GET whose handler returns at once is answered within the callback: no promise, no abort handler, no copies.
 */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { AppError, notFound } from '#src/core/errors.ts';
import { isPlausibleId } from '#src/core/ids.ts';
import type { Principal } from '#src/core/principal.ts';
import type { Edge } from './edge.ts';
import { admitStream, EventStream, STREAM_HEADERS } from './event-stream.ts';
import { beginReceipt, type Receipt } from './idempotency.ts';
import { parseJsonBody } from './json-body.ts';
import { LateAnswer } from './late-answer.ts';
import { requireSameOrigin } from './origin.ts';
import { problemReply, toAppError } from './problem.ts';
import { createQueryParser, type QueryParser } from './query.ts';
import { type LateReply, ok, type PlainReply, type Reply, type StreamReply } from './reply.ts';
import { bodyTooLarge, isDiscarded, readBody } from './request-body.ts';
import {
  announcesBody,
  copyHeaders,
  copyParams,
  framingOf,
  readIdempotencyKey,
  requireFraming,
  requireJson,
} from './request-head.ts';
import { requestIdFor } from './request-id.ts';
import { type AnyExchange, DEFAULT_BODY_LIMIT_BYTES, paramNamesOf, type Route } from './route.ts';
import { type Check, createCheck } from './violations.ts';
import { bodyInPieces, writeInPieces } from './write-pieces.ts';
import { type EncodedReply, encodeReply, writeHead, writeReply } from './write-reply.ts';

const NONE: Readonly<Record<string, string>> = Object.freeze({});
const NO_BODY = Buffer.alloc(0);

/** A route with everything worked out that does not depend on the request. */
interface Prepared {
  readonly route: Route;
  readonly edge: Edge;
  readonly paramNames: readonly string[];
  readonly headerNames: readonly string[];
  readonly action: string | undefined;
  readonly isMutation: boolean;
  readonly isStream: boolean;
  readonly limitBytes: number;
  readonly parseQuery: QueryParser;
  readonly checkBody: Check | undefined;
}

export type RequestHandler = (res: HttpResponse, req: HttpRequest) => void;

/** What answers the requests of one route; `headOnly` leaves the bodies out. */
export function createRequestHandler(route: Route, edge: Edge, headOnly = false): RequestHandler {
  const prepared: Prepared = {
    route,
    edge,
    paramNames: paramNamesOf(route.path),
    headerNames: Object.keys(route.headers ?? {}),
    action: route.access === 'public' ? undefined : route.access.action,
    isMutation: route.method !== 'GET',
    isStream: Object.values(route.responses).some(({ contentType }) => contentType === 'text/event-stream'),
    limitBytes: route.bodyLimitBytes ?? DEFAULT_BODY_LIMIT_BYTES,
    parseQuery: createQueryParser(route.query),
    checkBody: route.body === undefined ? undefined : createCheck(route.body),
  };
  return (res, req) =>
    new Connection(prepared, res, headOnly, requestIdFor(req.getHeader('x-request-id'))).receive(req);
}

class Connection implements AnyExchange {
  readonly requestId: string;
  principal: Principal | undefined;
  params = NONE;
  headers = NONE;
  query: unknown;
  body: unknown;
  remoteAddress = '';
  readonly headOnly: boolean;

  readonly #prepared: Prepared;
  readonly #res: HttpResponse;
  #gone = false;
  #watched = false;
  #closeAfter = false;
  #handling = false;
  #sending = false;
  #abort: AbortController | undefined;
  #stream: EventStream | undefined;
  #late: (LateReply & { readonly answer: LateAnswer }) | undefined;
  #idempotencyKey: string | undefined;
  #sealedBy: string | undefined;
  #receipt: Receipt | undefined;
  /** Settles when what a GET has seen is flushed. */
  #seen: Promise<void> | undefined;

  constructor(prepared: Prepared, res: HttpResponse, headOnly: boolean, requestId: string) {
    this.#prepared = prepared;
    this.#res = res;
    this.headOnly = headOnly;
    this.requestId = requestId;
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#gone) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  /** The route's callback: `req` is dead when this returns. */
  receive(req: HttpRequest): void {
    let expectsBody: boolean;
    try {
      this.#admit(req);
      expectsBody = this.#prepared.checkBody !== undefined && this.#expectBody(req);
    } catch (error) {
      this.#refuse(this.#problem(error));
      return;
    }
    if (expectsBody) {
      this.#watch();
      readBody(this.#res, this.#prepared.limitBytes, (body, isEnd) => this.#receiveBody(body, isEnd));
    } else this.#handleInTurn(NO_BODY);
  }

  /** Everything that can be refused before the body. */
  #admit(req: HttpRequest): void {
    const { route, edge, paramNames, headerNames, action, isStream, parseQuery } = this.#prepared;
    if (paramNames.length > 0) this.params = copyParams(req, paramNames);
    if (edge.draining() && route.whileDraining !== true) {
      this.#closeAfter = true;
      throw new AppError('unavailable', 'The server is stopping.', { headers: { 'retry-after': '5' } });
    }
    const framing = framingOf(req);
    if (framing !== 'plain') this.#closeAfter = true;
    requireFraming(framing);
    if (action !== undefined) {
      this.principal = this.#authenticate(req);
      edge.auth.authorize(this.principal, action);
      if (isStream) admitStream(edge.streams, edge.streamsPerWorkspace, this.principal.workspaceId);
    }
    for (const name of paramNames) if (!isPlausibleId(this.params[name]!)) throw notFound();
    if (route.sameOrigin === true) {
      requireSameOrigin(req.getHeader('origin'), req.getHeader('sec-fetch-site'), req.getHeader('host'));
    }
    if (route.method === 'POST') this.#idempotencyKey = readIdempotencyKey(req);
    if (route.audited === true)
      this.remoteAddress = Buffer.from(this.#res.getRemoteAddressAsText()).toString();
    if (route.secretAnswer === true) this.#sealedBy = req.getHeader('authorization');
    this.query = parseQuery(req.getQuery());
    if (headerNames.length > 0) this.headers = copyHeaders(req, headerNames);
  }

  #authenticate(req: HttpRequest): Principal {
    const { auth, guesses } = this.#prepared.edge;
    const authorization = req.getHeader('authorization');
    try {
      return auth.authenticate(authorization, req.getHeader('service-workspace-id'));
    } catch (error) {
      const isGuess = error instanceof AppError && error.code === 'unauthenticated' && authorization !== '';
      if (!isGuess) throw error;
      throw guesses.judge(new Uint8Array(this.#res.getRemoteAddress()), error);
    }
  }

  /** Whether a body is to be read. Throws when its media type or its announced length already refuse it. */
  #expectBody(req: HttpRequest): boolean {
    const { route, limitBytes } = this.#prepared;
    if (!announcesBody(req) && route.optionalBody === true) return false;
    requireJson(req.getHeader('content-type'));
    const lengthBytes = Number(req.getHeader('content-length'));
    if (lengthBytes > limitBytes) {
      if (!isDiscarded(lengthBytes, limitBytes)) this.#closeAfter = true;
      throw bodyTooLarge(limitBytes);
    }
    return true;
  }

  /**
   * A connection that is to end is answered after this turn. Now, uWebSockets.js would go on with what came behind the
   * request and forget to end it; while an answer is due, it ends it with the first byte of another request.
   */
  #refuse(reply: EncodedReply): void {
    if (!this.#closeAfter) {
      this.#send(reply);
      return;
    }
    this.#watch();
    setImmediate(() => this.#send(reply));
  }

  #receiveBody(body: Buffer | AppError, isEnd: boolean): void {
    try {
      if (!isEnd) this.#closeAfter = true;
      if (body instanceof AppError) throw body;
      this.body = parseJsonBody(body);
      this.#prepared.checkBody?.(this.body);
    } catch (error) {
      this.#refuse(this.#problem(error));
      return;
    }
    this.#handleInTurn(body);
  }

  /** See #refuse. */
  #handleInTurn(body: Buffer): void {
    if (!this.#closeAfter) {
      this.#handle(body);
      return;
    }
    this.#watch();
    setImmediate(() => this.#handle(body));
  }

  #handle(body: Buffer): void {
    this.#handling = true;
    let answer: Reply | Promise<Reply>;
    try {
      answer = this.#replayOrRun(body);
    } catch (error) {
      answer = this.#problem(error);
    }
    if (!(answer instanceof Promise)) {
      this.#finish(answer);
      return;
    }
    this.#watch();
    answer.then(
      (reply) => this.#finish(reply),
      (error: unknown) => this.#finish(this.#problem(error)),
    );
  }

  #replayOrRun(body: Buffer): Reply | Promise<Reply> {
    const { route, edge, isMutation } = this.#prepared;
    if (
      this.#idempotencyKey !== undefined &&
      edge.idempotency !== undefined &&
      this.principal !== undefined
    ) {
      const start = beginReceipt(edge.idempotency, {
        workspaceId: this.principal.workspaceId,
        method: route.method,
        path: this.#instance(),
        key: this.#idempotencyKey,
        sealedBy: this.#sealedBy,
        headers: this.headers,
        body,
      });
      if (start.kind === 'replay') return start.reply;
      this.#receipt = start;
    }
    if (isMutation) return route.handle(this);
    const { result, uncommitted } = edge.observe(() => route.handle(this));
    this.#seen = uncommitted;
    return result;
  }

  /** Runs in the turn that made the reply: the receipt is kept now, the answer goes out once both are flushed. */
  #finish(reply: Reply): void {
    if (reply.kind === 'stream') {
      this.#openStream(reply);
      return;
    }
    if (reply.kind === 'late') {
      this.#await(reply);
      return;
    }
    const { edge, isMutation } = this.#prepared;
    const encoded = this.#encode(reply);
    let flushed: Promise<void> | undefined;
    try {
      this.#receipt?.settle(encoded);
      flushed = isMutation ? edge.durable() : this.#seen;
    } catch (error) {
      this.#send(this.#problem(error));
      return;
    }
    if (flushed === undefined) {
      this.#send(encoded);
      return;
    }
    this.#watch();
    flushed.then(
      () => this.#send(encoded),
      (error: unknown) => this.#send(this.#problem(error)),
    );
  }

  #await(reply: LateReply): void {
    this.#watch();
    const { edge, action } = this.#prepared;
    const answer = new LateAnswer(this.#res, this.requestId, edge.heartbeatMs, this.#closeAfter);
    if (this.#gone) answer.stop();
    this.#late = { ...reply, answer };
    const pending = { caller: this.principal, action, revoke: (error: AppError) => this.#revoke(error) };
    edge.pendingAnswers.add(pending);
    reply.value
      .finally(() => edge.pendingAnswers.delete(pending))
      .then(
        (value) => this.#finish(ok(value)),
        (error: unknown) => this.#finish(this.#problem(error)),
      );
  }

  #revoke(error: AppError): void {
    if (this.#gone) return;
    this.#send(this.#problem(error));
    this.#gone = true;
    this.#abort?.abort();
  }

  #encode(reply: PlainReply): EncodedReply {
    try {
      return encodeReply(reply);
    } catch (error) {
      return this.#problem(error);
    }
  }

  #send(reply: EncodedReply): void {
    this.#late?.answer.stop();
    if (this.#late?.answer.hasBegun === true && reply.kind === 'bytes') {
      this.#release();
      const { answer } = this.#late;
      if (!this.#gone) this.#res.cork(() => answer.end(reply.bytes));
      return;
    }
    const isWhole = this.headOnly || this.#gone || this.#closeAfter;
    const pieces = isWhole ? undefined : bodyInPieces(reply);
    if (pieces !== undefined) {
      this.#sending = true;
      this.#watch();
      writeInPieces(this.#res, pieces, this.requestId, () => this.#release());
      return;
    }
    this.#release();
    if (this.#gone) return;
    const options = { requestId: this.requestId, headOnly: this.headOnly, close: this.#closeAfter };
    if (this.#watched) this.#res.cork(() => writeReply(this.#res, reply, options));
    else writeReply(this.#res, reply, options);
  }

  #openStream(reply: StreamReply): void {
    const res = this.#res;
    this.#watch();
    this.#release();
    if (this.#gone) return;
    res.cork(() => {
      writeHead(res, 200, this.requestId, { ...STREAM_HEADERS, ...reply.headers });
      if (this.headOnly) {
        res.endWithoutBody();
        return;
      }
      this.#stream = new EventStream(res, this.principal, this.#prepared.edge.streams);
      this.#stream.start(reply.open);
    });
  }

  /** From here on the client may leave before it is answered, and the answer is no longer corked by the callback. */
  #watch(): void {
    if (this.#watched) return;
    this.#watched = true;
    this.#prepared.edge.inFlight.add(this);
    this.#res.onAborted(() => {
      this.#gone = true;
      this.#abort?.abort();
      this.#stream?.close();
      this.#late?.answer.stop();
      if (!this.#handling || this.#sending) this.#release();
    });
  }

  #release(): void {
    if (this.#watched) this.#prepared.edge.inFlight.delete(this);
  }

  #problem(error: unknown): EncodedReply {
    const context = { requestId: this.requestId, instance: this.#instance() };
    const problem = toAppError(error, this.#prepared.edge.log, context);
    if (this.#late?.answer.hasBegun === true) return encodeReply(ok(this.#late.failed(problem)));
    return problemReply(problem, context);
  }

  /** The path that was asked for, put together again because the request is gone by the time it is needed. */
  #instance(): string {
    return this.#prepared.route.path.replace(/:(\w+)/g, (_, name: string) =>
      encodeURI(this.params[name] ?? ''),
    );
  }
}
