/**
 * Admission: every check that can refuse a request before its body is read, and the copy of those parts of the request that its
 * handler needs.
 *
 * Order of the checks: draining, framing, read-only server, caller, permission, disk space, path, origin, idempotency key, query, media type,
 * announced length. The order is part of the contract: an unauthenticated caller must not learn which objects exist.
 */

import type { PageCredential } from '#src/base/caller/page-access.ts';
import type { Principal, TokenHolder } from '#src/base/caller/principal.ts';
import { AppError, notFound, readOnly } from '#src/base/errors/errors.ts';
import { isPlausibleId } from '#src/base/ids.ts';
import { RouteDurations, type ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import { parseTraceparent, type TraceContext } from '#src/base/tracing/trace-context.ts';
import type { Span } from '#src/base/tracing/tracer.ts';
import type { Home } from '#src/runtime/homes/slots.ts';
import { admitStream } from '../reply/event-stream.ts';
import type { ReplyStamp } from '../reply/write-reply.ts';
import {
  type AnyRouteRequest,
  changesData,
  DEFAULT_BODY_LIMIT_BYTES,
  needsRoom,
  openEndOf,
  PAGE_COOKIE,
  paramNamesOf,
  type Route,
  withOneShape,
} from '../route.ts';
import type { WireRequest, WireResponse } from '../wire-exchange.ts';
import type { BodyCharge } from './body-memory.ts';
import { NO_CONTENT } from './body-stream.ts';
import type { Forwarding, HttpContext } from './http-context.ts';
import { requireSameOrigin } from './origin.ts';
import { createPageQueryParser, createQueryParser, type QueryParser } from './query.ts';
import { bodyTooLarge, isDiscarded } from './request-body.ts';
import {
  announcesBody,
  copyHeaders,
  copyParams,
  countHeaders,
  framingOf,
  readIdempotencyKey,
  requireJson,
  requireSoundFraming,
} from './request-head.ts';
import { findHome, homeParamOf } from './request-home.ts';
import { signInSecretOf } from './sign-in-cookie.ts';
import { type Check, createCheck } from './violations.ts';

const NONE: Readonly<Record<string, string>> = Object.freeze({});

/** A route, with everything precomputed that does not depend on the request. */
export interface PreparedRoute {
  readonly route: Route;
  readonly paramNames: readonly string[];
  /** The parameter that takes all that follows in the path. */
  readonly openEnd: ReturnType<typeof openEndOf>;
  /** The parameter that names the notebook or conversation that requests are about. */
  readonly homeParam: string | undefined;
  /**
   * Whether requests with one idempotency key may be carried out in different workers: such requests may name different homes
   * although their path is the same.
   */
  readonly sharesKeys: boolean;
  readonly headerNames: readonly string[];
  readonly action: string | undefined;
  readonly isMutation: boolean;
  readonly isStream: boolean;
  /** Whether the route is refused while the disk is full. */
  readonly needsRoom: boolean;
  /** Whether a server that only reads refuses the route. */
  readonly changesData: boolean;
  readonly limitBytes: number;
  readonly parseQuery: QueryParser;
  /** The parsed query of a request without one; undefined when the route requires a parameter. */
  readonly queryDefaults: unknown;
  /** Undefined when the route takes no body. */
  readonly checkBody: Check | undefined;
  readonly durations: RouteDurations | undefined;
}

/** Precomputes the facts about a route that admission needs. */
export function prepareRoute(declared: Route, metrics?: ServerMetrics): PreparedRoute {
  const route = withOneShape(declared);
  const paramNames = paramNamesOf(route.path);
  const parseQuery =
    route.isPage === true ? createPageQueryParser(route.query) : createQueryParser(route.query);
  return {
    route,
    paramNames,
    openEnd: openEndOf(route.path),
    homeParam: homeParamOf(paramNames),
    sharesKeys: route.homeOf !== undefined,
    headerNames: Object.keys(route.headers ?? {}),
    action: typeof route.access === 'string' ? undefined : route.access.action,
    isMutation: route.method !== 'GET',
    isStream: Object.values(route.responses).some(({ contentType }) => contentType === 'text/event-stream'),
    needsRoom: needsRoom(route),
    changesData: changesData(route),
    limitBytes: route.bodyLimitBytes ?? DEFAULT_BODY_LIMIT_BYTES,
    parseQuery,
    queryDefaults: defaultsIn(parseQuery),
    checkBody: route.body === undefined ? undefined : createCheck(route.body),
    durations: metrics && new RouteDurations(metrics, route.method, route.path),
  };
}

function defaultsIn(parseQuery: QueryParser): unknown {
  try {
    return parseQuery('');
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

/** The copy of one request that its handler sees. `admitRequest` fills in the copy, which outlives the connection. */
export class AdmittedRequest implements AnyRouteRequest {
  readonly requestId: string;
  /** See `ReplyStamp`. */
  readonly allowedOrigin: string | undefined;
  readonly headOnly: boolean;
  principal: Principal | undefined;
  holder: TokenHolder | undefined;
  params = NONE;
  headers = NONE;
  query: unknown;
  body: unknown;
  content: AsyncIterable<Uint8Array> = NO_CONTENT;
  remoteAddress = '';
  trace: TraceContext | undefined;
  span: Span | undefined;
  idempotencyKey: string | undefined;
  /**
   * The `Authorization` header, or the secret of a browser's session, if the reply holds a secret. The idempotency record of that
   * reply is sealed with this credential.
   */
  credential: string | undefined;
  /**
   * The notebook, conversation or workspace of the request; undefined in a server of one process, and when any worker may answer
   * it.
   */
  home: Home | undefined;
  /** The slot of the request's home, when the home is another worker. */
  elsewhere: number | undefined;
  /**
   * Whether the connection must end with the reply, because the bytes after the request cannot be trusted or will not be
   * read.
   */
  endsConnection = false;
  /** The media type of an optional body that comes in chunks. It is checked unless the body turns out to be empty. */
  uncheckedType: string | undefined;
  /** The number of changes of callers' rights when the caller was checked: see `CallerChanges`. */
  changesSeen = 0;
  /** The memory of a body that came in pieces, until the exchange is over. */
  bodyCharge: BodyCharge | undefined;
  /** The memory of a large answer, until the exchange is over. */
  answerCharge: BodyCharge | undefined;
  /** The place of a large answer that is being made, until the answer is charged or the exchange is over. */
  answerPlace: Disposable | undefined;
  /** The `Accept-Encoding` header, once the callback of uWebSockets.js is over. */
  acceptedEncodings = '';
  /** The time at which the server had the whole request, of `performance.now()`. */
  beganAtMs = performance.now();
  #abort: AbortController | undefined;
  #isAbandoned = false;

  constructor({ requestId, allowedOrigin }: ReplyStamp, headOnly: boolean) {
    this.requestId = requestId;
    this.allowedOrigin = allowedOrigin;
    this.headOnly = headOnly;
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#isAbandoned) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  /** Aborts `signal`, because the client has left. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#abort?.abort();
  }
}

/**
 * Fills in `request` from `req`, and returns whether the body must be read. Throws when the request is refused; `request` then
 * contains the parts that were already copied.
 */
export function admitRequest(
  request: AdmittedRequest,
  prepared: PreparedRoute,
  context: HttpContext,
  res: WireResponse,
  req: WireRequest,
): boolean {
  const { route, paramNames, headerNames, action } = prepared;
  const traceparent = req.getHeader('traceparent');
  if (traceparent !== '' || context.tracer !== undefined) beginTrace(request, route, context, traceparent);
  if (paramNames.length > 0) request.params = copyParams(req, paramNames, prepared.openEnd);
  if (context.requestLog.logsAll) request.remoteAddress = context.clientAddress(res, req);
  if (context.phase.isDraining && route.whileDraining !== true) {
    request.endsConnection = true;
    throw new AppError('unavailable', 'The server is stopping.', { headers: { 'retry-after': '5' } });
  }
  const counted = route.method === 'POST' ? countHeaders(req) : undefined;
  const framing = framingOf(req, counted);
  if (framing !== 'plain') {
    request.endsConnection = true;
    requireSoundFraming(framing);
  }
  if (prepared.changesData && context.readOnly) throw readOnly();
  if (context.forwarding !== undefined) {
    context.forwarding.refresh();
    request.elsewhere = elsewhereByTicket(context.forwarding, prepared, req);
    if (request.elsewhere !== undefined) return false; // the worker that issued the ticket knows its caller
  }
  request.changesSeen = context.open.callerChanges.count;
  if (action !== undefined) {
    const principal = callerOf(context, prepared, request, res, req);
    request.principal = principal;
    if (principal !== undefined) context.auth.authorize(principal, action);
    if (principal !== undefined && prepared.isStream && context.streamPermits === undefined)
      admitStream(
        context.open.streams,
        context.streamsPerWorkspace(principal.workspaceId),
        principal.workspaceId,
      );
  }
  if (route.access === 'token') {
    const authorization = req.getHeader('authorization');
    try {
      const session = authorization === '' ? sessionFor(context, prepared, request, req) : undefined;
      request.holder =
        session === undefined ? context.auth.identify(authorization) : context.auth.identifySignIn(session);
    } catch (error) {
      throw guessCounted(error, context, res, req, authorization);
    }
  }
  if (prepared.needsRoom && context.store.isFull) throw storageFull();
  for (const name of paramNames)
    if (name !== prepared.openEnd?.name && !isPlausibleId(request.params[name]!)) throw notFound();
  if (route.sameOrigin === true) {
    const [origin, fetchSite] = [req.getHeader('origin'), req.getHeader('sec-fetch-site')];
    const [host, forwardedProto] = [req.getHeader('host'), req.getHeader('x-forwarded-proto')];
    requireSameOrigin({ origin, fetchSite, host, forwardedProto }, context.publicUrl);
  }
  if (counted !== undefined && route.ignoresKeys !== true && !context.readOnly)
    request.idempotencyKey = readIdempotencyKey(req, counted);
  const { audited } = route;
  const isAudited = typeof audited === 'function' ? audited(request.params) : audited === true;
  if (isAudited && request.remoteAddress === '') request.remoteAddress = context.clientAddress(res, req);
  if (route.secretAnswer === true) request.credential ??= req.getHeader('authorization');
  const query = req.getQuery() ?? '';
  request.query =
    query === '' && prepared.queryDefaults !== undefined
      ? prepared.queryDefaults
      : prepared.parseQuery(query);
  if (headerNames.length > 0) request.headers = copyHeaders(req, headerNames);
  if (context.forwarding !== undefined && route.homeInBody !== true)
    findHome(request, prepared, context.forwarding);
  if (route.takesBytes === true) {
    requireReadable(request, prepared, req);
    return announcesBody(req);
  }
  return prepared.checkBody !== undefined && expectsBody(request, prepared, req);
}

/** Returns the worker that issued the ticket of an event stream; undefined when this worker did, or there is no ticket. */
function elsewhereByTicket(
  forwarding: Forwarding,
  { isStream }: PreparedRoute,
  req: WireRequest,
): number | undefined {
  if (!isStream || req.getHeader('authorization') !== '') return undefined;
  const ticket = req.getQuery('ticket');
  return ticket === undefined || ticket === '' ? undefined : forwarding.elsewhereByTicket(ticket);
}

/** Continues the trace of the client, whose header is ignored when it is malformed, or begins one if the sampling says so. */
function beginTrace(
  request: AdmittedRequest,
  route: Route,
  { tracer }: HttpContext,
  traceparent: string,
): void {
  const parent = parseTraceparent(traceparent);
  if (tracer !== undefined) {
    const attributes = { 'http.request.method': route.method, 'http.route': route.path };
    request.span = tracer.start(`${route.method} ${route.path}`, { kind: 'server', parent, attributes });
  }
  request.trace = request.span?.context ?? parent;
}

/**
 * Returns the caller from the headers, from the ticket in the query of an event stream, or from the session's cookie. Returns
 * undefined when there is no valid caller, if the route allows that.
 */
function callerOf(
  context: HttpContext,
  prepared: PreparedRoute,
  request: AdmittedRequest,
  res: WireResponse,
  req: WireRequest,
): Principal | undefined {
  let credential = req.getHeader('authorization');
  try {
    const { route, action = '' } = prepared;
    if (route.credential !== undefined) {
      const { params } = request;
      credential = pageCredentialOf(route.credential, params, req);
      const { notebookId = '' } = params;
      return context.pageTokens.principalOf({ kind: route.credential, text: credential, notebookId });
    }
    if (credential === '') {
      const ticket = prepared.isStream ? req.getQuery('ticket') : undefined;
      if (ticket !== undefined && ticket !== '') {
        credential = ticket;
        return context.redeemTicket(ticket, { action, sessionId: request.params.sessionId ?? '' });
      }
      const session = sessionFor(context, prepared, request, req);
      if (session !== undefined)
        return context.auth.authenticateSession(session, req.getHeader('service-workspace-id'));
    }
    return context.auth.authenticate(credential, req.getHeader('service-workspace-id'));
  } catch (caught) {
    const error = guessCounted(caught, context, res, req, credential);
    const isStranger =
      error instanceof AppError && (error.code === 'unauthenticated' || error.code === 'not_found');
    if (isStranger && prepared.route.handleStranger !== undefined) return undefined;
    throw error;
  }
}

/** Returns the secret of the browser's session that sends the request; undefined without one. Throws `cross_origin`. */
function sessionFor(
  { publicUrl }: HttpContext,
  { route, isMutation }: PreparedRoute,
  request: AdmittedRequest,
  req: WireRequest,
): string | undefined {
  if (route.tokensOnly === true) return undefined;
  const session = signInSecretOf(req, publicUrl, isMutation);
  if (session !== undefined && route.secretAnswer === true) request.credential = session;
  return session;
}

/** Returns the credential of a page of a notebook; empty when the request has none. */
function pageCredentialOf(
  kind: PageCredential,
  params: Readonly<Record<string, string>>,
  req: WireRequest,
): string {
  if (kind === 'code') return params.code ?? '';
  if (kind === 'public') return params.code?.split('/', 1)[0] ?? ''; // the path of the file follows
  if (kind === 'page') return /^Bearer +(\S+)$/i.exec(req.getHeader('authorization'))?.[1] ?? '';
  const cookies = req.getHeader('cookie').split(';');
  const own = cookies.find((one) => one.trim().startsWith(`${PAGE_COOKIE}=`));
  return own?.slice(own.indexOf('=') + 1).trim() ?? '';
}

/** Returns the error to throw for a credential that was refused. A wrong one is counted against the address that it comes from. */
function guessCounted(
  error: unknown,
  { authThrottle, clientAddress }: HttpContext,
  res: WireResponse,
  req: WireRequest,
  credential: string,
): unknown {
  const isGuess = error instanceof AppError && error.code === 'unauthenticated' && credential !== '';
  return isGuess ? authThrottle.recordFailure(clientAddress(res, req), error) : error;
}

/** Returns whether a body follows. Throws when its media type or its announced length already refuses it. */
function expectsBody(request: AdmittedRequest, prepared: PreparedRoute, req: WireRequest): boolean {
  const isOptional = prepared.route.optionalBody === true;
  if (isOptional && !announcesBody(req)) return false;
  const mediaType = req.getHeader('content-type');
  if (isOptional && req.getHeader('content-length') === '') request.uncheckedType = mediaType;
  else requireJson(mediaType);
  requireReadable(request, prepared, req);
  return true;
}

/** Throws `unsupported_media_type` for a compressed body, and `body_too_large` when the announced length is above the limit. */
function requireReadable(request: AdmittedRequest, { limitBytes }: PreparedRoute, req: WireRequest): void {
  const encoding = req.getHeader('content-encoding');
  if (encoding !== '' && encoding.toLowerCase() !== 'identity')
    throw new AppError(
      'unsupported_media_type',
      'Send the body without Content-Encoding: the server does not decompress bodies.',
    );
  const lengthBytes = Number(req.getHeader('content-length'));
  if (lengthBytes <= limitBytes) return;
  if (!isDiscarded(lengthBytes, limitBytes)) request.endsConnection = true;
  throw bodyTooLarge(limitBytes);
}

function storageFull(): AppError {
  return new AppError(
    'storage_full',
    'The disk of the server is full, so nothing new can be stored. Reading, cancelling and deleting still work. Ask an operator of the server to free disk space, then send the request again.',
  );
}
