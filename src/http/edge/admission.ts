/**
 * Admission: everything that can refuse a request before its body is read, and the copy of what its handler needs.
 *
 * Order of the checks: draining, framing, caller, permission, path, origin, idempotency key, query, media type, announced
 * length. The order is part of the contract: an unauthenticated caller learns nothing of what exists.
 */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { AppError, notFound } from '#src/core/errors.ts';
import { isPlausibleId } from '#src/core/ids.ts';
import type { Principal } from '#src/core/principal.ts';
import { admitStream } from '../reply/event-stream.ts';
import { type AnyRouteRequest, DEFAULT_BODY_LIMIT_BYTES, paramNamesOf, type Route } from '../route.ts';
import type { HttpContext } from './http-context.ts';
import { requireSameOrigin } from './origin.ts';
import { createQueryParser, type QueryParser } from './query.ts';
import { bodyTooLarge, isDiscarded } from './request-body.ts';
import {
  announcesBody,
  copyHeaders,
  copyParams,
  framingOf,
  readIdempotencyKey,
  requireJson,
  requireSoundFraming,
} from './request-head.ts';
import { type Check, createCheck } from './violations.ts';

const NONE: Readonly<Record<string, string>> = Object.freeze({});

/** A route, with everything precomputed that does not depend on the request. */
export interface PreparedRoute {
  readonly route: Route;
  readonly paramNames: readonly string[];
  readonly headerNames: readonly string[];
  readonly action: string | undefined;
  readonly isMutation: boolean;
  readonly isStream: boolean;
  readonly limitBytes: number;
  readonly parseQuery: QueryParser;
  /** Undefined when the route takes no body. */
  readonly checkBody: Check | undefined;
}

/** Precomputes what admission needs to know of a route. */
export function prepareRoute(route: Route): PreparedRoute {
  return {
    route,
    paramNames: paramNamesOf(route.path),
    headerNames: Object.keys(route.headers ?? {}),
    action: route.access === 'public' ? undefined : route.access.action,
    isMutation: route.method !== 'GET',
    isStream: Object.values(route.responses).some(({ contentType }) => contentType === 'text/event-stream'),
    limitBytes: route.bodyLimitBytes ?? DEFAULT_BODY_LIMIT_BYTES,
    parseQuery: createQueryParser(route.query),
    checkBody: route.body === undefined ? undefined : createCheck(route.body),
  };
}

/** The copy of one request that its handler sees. It outlives the connection; `admit` fills it in. */
export class AdmittedRequest implements AnyRouteRequest {
  readonly requestId: string;
  readonly headOnly: boolean;
  principal: Principal | undefined;
  params = NONE;
  headers = NONE;
  query: unknown;
  body: unknown;
  remoteAddress = '';
  idempotencyKey: string | undefined;
  /** The `Authorization` header, when the reply holds a secret that its idempotency record is to be sealed with. */
  credential: string | undefined;
  /**
   * Whether the connection must end with the reply, because the bytes after the request cannot be trusted or will not be
   * read.
   */
  endsConnection = false;
  #abort: AbortController | undefined;
  #isAbandoned = false;

  constructor(requestId: string, headOnly: boolean) {
    this.requestId = requestId;
    this.headOnly = headOnly;
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#isAbandoned) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  /** Aborts `signal`: the client has left. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#abort?.abort();
  }
}

/**
 * Fills in `request` from `req`, and returns whether a body is to be read. Throws the refusal of a request that may not
 * be made; `request` then has what was copied until then.
 */
export function admit(
  request: AdmittedRequest,
  prepared: PreparedRoute,
  context: HttpContext,
  res: HttpResponse,
  req: HttpRequest,
): boolean {
  const { route, paramNames, headerNames, action } = prepared;
  if (paramNames.length > 0) request.params = copyParams(req, paramNames);
  if (context.draining() && route.whileDraining !== true) {
    request.endsConnection = true;
    throw new AppError('unavailable', 'The server is stopping.', { headers: { 'retry-after': '5' } });
  }
  const framing = framingOf(req);
  if (framing !== 'plain') request.endsConnection = true;
  requireSoundFraming(framing);
  if (action !== undefined) {
    const principal = authenticate(context, res, req);
    request.principal = principal;
    context.auth.authorize(principal, action);
    if (prepared.isStream) admitStream(context.streams, context.streamsPerWorkspace, principal.workspaceId);
  }
  for (const name of paramNames) if (!isPlausibleId(request.params[name]!)) throw notFound();
  if (route.sameOrigin === true) {
    requireSameOrigin(req.getHeader('origin'), req.getHeader('sec-fetch-site'), req.getHeader('host'));
  }
  if (route.method === 'POST') request.idempotencyKey = readIdempotencyKey(req);
  if (route.audited === true) request.remoteAddress = Buffer.from(res.getRemoteAddressAsText()).toString();
  if (route.secretAnswer === true) request.credential = req.getHeader('authorization');
  request.query = prepared.parseQuery(req.getQuery());
  if (headerNames.length > 0) request.headers = copyHeaders(req, headerNames);
  return prepared.checkBody !== undefined && expectsBody(request, prepared, req);
}

function authenticate({ auth, authThrottle }: HttpContext, res: HttpResponse, req: HttpRequest): Principal {
  const authorization = req.getHeader('authorization');
  try {
    return auth.authenticate(authorization, req.getHeader('service-workspace-id'));
  } catch (error) {
    const isGuess = error instanceof AppError && error.code === 'unauthenticated' && authorization !== '';
    if (!isGuess) throw error;
    throw authThrottle.recordFailure(new Uint8Array(res.getRemoteAddress()), error);
  }
}

/** Returns whether a body follows. Throws when its media type or its announced length already refuses it. */
function expectsBody(
  request: AdmittedRequest,
  { route, limitBytes }: PreparedRoute,
  req: HttpRequest,
): boolean {
  if (!announcesBody(req) && route.optionalBody === true) return false;
  requireJson(req.getHeader('content-type'));
  const lengthBytes = Number(req.getHeader('content-length'));
  if (lengthBytes > limitBytes) {
    if (!isDiscarded(lengthBytes, limitBytes)) request.endsConnection = true;
    throw bodyTooLarge(limitBytes);
  }
  return true;
}
