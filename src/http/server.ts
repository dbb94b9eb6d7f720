/**
 * The HTTP server: it mounts the routes, answers requests that match no route, and owns the listening socket. It closes in three
 * steps: it stops listening, it answers the requests in flight, it closes every connection.
 */
import type { HttpRequest, HttpResponse, TemplatedApp } from 'uWebSockets.js';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { Method } from '#src/contract/wire/paths.ts';
import { AdmittedRequest, type PreparedRoute, prepareRoute } from './edge/admission.ts';
import { createAnswerPlaces } from './edge/answer-places.ts';
import { AuthThrottle } from './edge/auth-throttle.ts';
import { BodyMemory } from './edge/body-memory.ts';
import { createClientAddresses } from './edge/client-address.ts';
import { ConnectionLimit, limitConnections } from './edge/connection-limit.ts';
import { createAllowedOrigins, preflightHeaders } from './edge/cors.ts';
import { HttpExchange } from './edge/exchange.ts';
import { type HttpContext, type HttpDependencies, NO_STORE } from './edge/http-context.ts';
import { OpenRequests } from './edge/open-requests.ts';
import { framingOf, requestIdFor } from './edge/request-head.ts';
import { RequestLog } from './edge/request-log.ts';
import { WorkspaceTurns } from './edge/workspace-turns.ts';
import type { InnerRequests } from './inner/inner-requests.ts';
import { servePeers } from './peer/serve-peers.ts';
import type { OpenStreams } from './reply/event-stream.ts';
import { problemReply } from './reply/problem.ts';
import { problemPage, wantsPage } from './reply/problem-page.ts';
import { type EncodedReply, type ReplyStamp, writeWhole } from './reply/write-reply.ts';
import type { Route } from './route.ts';
import { createApp, type ListenAddress, listenForProxies, listenOn, loadUws } from './uws.ts';
import type { WireRequest } from './wire-exchange.ts';

export interface ServerOptions extends HttpDependencies {
  readonly routes: readonly Route[];
  readonly listen: ListenAddress;
  /** The descriptor of the bound unix socket to which proxies of this machine connect. The server closes it. */
  readonly proxies?: number | undefined;
  /** The path of another copy of uWebSockets.js than the one of this installation. */
  readonly uwebsockets?: string | undefined;
  /** Counts the open connections, together with those of other ports. Defaults to a limit of its own. */
  readonly connections?: ConnectionLimit;
  /** Gets the routes, for requests that the server makes to itself. */
  readonly inner?: InnerRequests;
}

export interface Server extends AsyncDisposable {
  readonly host: string;
  /** The configured port, or the free port that was chosen when the configured one is 0. */
  readonly port: number;
  /** Refuses new connections; open ones continue. Idempotent. */
  stopListening(): void;
  /** Requests and streams still open. */
  readonly open: OpenRequests;
  /** Stops listening, waits up to `graceMs` for requests in flight, then ends every connection. Idempotent. */
  close(graceMs?: number): Promise<void>;
}

const MOUNT = {
  GET: 'get',
  POST: 'post',
  PUT: 'put',
  PATCH: 'patch',
  DELETE: 'del',
} as const satisfies Record<Method, keyof TemplatedApp>;
const DEFAULT_GRACE_MS = 1000;
const DEFAULT_HEARTBEAT_MS = 10_000;
const GRACE_CHECK_MS = 5;

/** Resolves once the server listens. Rejects with an error of one line when it cannot, or when a route is misdeclared. */
export async function createServer(options: ServerOptions): Promise<Server> {
  const uws = await loadUws(options.uwebsockets);
  const open = options.open ?? new OpenRequests(options.log);
  const { ofPort, ofProxySocket } = createClientAddresses({
    trusted: options.trustedProxies ?? [],
    sharesNetwork: options.sharesNetwork ?? false,
  });
  const context: HttpContext = {
    auth: options.auth,
    log: options.log,
    durable: options.durable ?? (() => undefined),
    store: options.store ?? NO_STORE,
    phase: options.phase ?? { isDraining: false },
    readOnly: options.readOnly ?? false,
    streamsPerWorkspace: options.streamsPerWorkspace ?? (() => 0),
    heartbeatMs: options.heartbeatMs ?? DEFAULT_HEARTBEAT_MS,
    idempotency: options.idempotency,
    metrics: options.metrics,
    tracer: options.tracer,
    publicUrl: options.publicUrl,
    open,
    turns: new WorkspaceTurns(),
    bodies: new BodyMemory(),
    answers: new BodyMemory({ alwaysTakesOne: true }),
    answerPlaces: createAnswerPlaces(),
    streamPermits: options.openStreamPermits?.((workspaceId) => open.streams.of(workspaceId)),
    authThrottle: new AuthThrottle(undefined, options.workers),
    requestLog: options.requestLog ?? RequestLog.silent(),
    clientAddress: ofPort,
    redeemTicket: options.redeemTicket ?? refuseTicket,
    pageCaller: options.pageCaller ?? refusePage,
    allowedOrigin: createAllowedOrigins(options.corsOrigins ?? []),
    forwarding: options.forwarding,
  };
  const connections = options.connections ?? new ConnectionLimit();
  const prepared = prepare(options.routes, context);
  const createMounted = (served: HttpContext): TemplatedApp => {
    const app = createApp(uws);
    limitConnections(app, connections);
    mount(app, prepared, served);
    return app;
  };
  const app = createMounted(context);
  options.inner?.attach(prepared, context);
  const { host } = options.listen;
  const handleForwarded = servePeers(prepared, context, (req, route) => stampOf(context, req, route));
  const shared = await options.forwarding?.join(handleForwarded, () => open.busyHomes());
  const listening = await listenOn(uws, app, shared === undefined ? options.listen : { host, ...shared });
  const proxies = shared === undefined ? options.proxies : shared.proxies;
  // An app of its own, because a connection does not say on which socket it was accepted.
  const proxied =
    proxies === undefined ? undefined : createMounted({ ...context, clientAddress: ofProxySocket });
  const listeningForProxies =
    proxied && (await listenForProxies(uws, proxied, proxies!, shared !== undefined));

  let isListening = true;
  let closed: Promise<void> | undefined;
  const stopListening = () => {
    if (isListening) listening.stop();
    if (isListening) listeningForProxies?.stop();
    isListening = false;
  };
  const close = async (graceMs: number) => {
    stopListening();
    const deadline = Date.now() + graceMs;
    const end = (streams: OpenStreams) => {
      for (const stream of streams) stream.end();
    };
    end(open.streams); // first, because other workers wait for the streams that they relay
    const isBusy = () => open.inFlight.size + open.mirrored.size > 0;
    while (isBusy() && Date.now() < deadline) await later(GRACE_CHECK_MS);
    end(open.streams);
    for (const stream of open.mirrored) stream.resync('server_stopping'); // the homes of these streams may go on
    for (const streams of [open.streams, open.mirrored]) {
      for (const stream of streams.leaving) stream.abandon();
    }
    app.close();
    proxied?.close();
  };
  const server: Server = {
    host,
    port: listening.port,
    open,
    stopListening,
    close(graceMs = DEFAULT_GRACE_MS) {
      closed ??= close(graceMs);
      return closed;
    },
    [Symbol.asyncDispose]() {
      return server.close();
    },
  };
  return server;
}

/** Returns the prepared routes. Throws when one is misdeclared. */
function prepare(routes: readonly Route[], { auth, metrics }: HttpContext): PreparedRoute[] {
  const declared = new Set<string>();
  return routes.map((route) => {
    if (typeof route.access !== 'string' && auth.requirements(route.access.action) === undefined) {
      throw new Error(`${route.operationId} needs the action ${route.access.action}, which is not declared`);
    }
    const named = `${route.method} ${route.path}`;
    if (declared.has(named)) throw new Error(`${named} is declared twice`);
    declared.add(named);
    return prepareRoute(route, metrics);
  });
}

/** Mounts the routes, and the refusals of all other requests. */
function mount(app: TemplatedApp, routes: readonly PreparedRoute[], context: HttpContext): void {
  const methodsOf = new Map<string, Set<string>>();
  const openPaths = new Set<string>();
  for (const prepared of routes) {
    const { route } = prepared;
    const methods = methodsOf.get(route.path) ?? new Set();
    methodsOf.set(route.path, methods.add(route.method));
    if (route.anyOrigin === true) openPaths.add(route.path);
    const pattern = patternOf(route.path);
    app[MOUNT[route.method]](pattern, handlerOf(prepared, context, false));
    if (route.method === 'GET') app.head(pattern, handlerOf(prepared, context, true));
  }
  for (const [path, methods] of methodsOf) {
    if (methods.has('GET')) methods.add('HEAD');
    const allow = [...methods.add('OPTIONS')].sort().join(', ');
    const preflight = preflightHeaders(allow);
    app.options(patternOf(path), (res, req) => {
      const stamp = stampOf(context, req, { anyOrigin: openPaths.has(path) });
      const headers = stamp.allowedOrigin ? { allow, ...preflight } : { allow };
      answer(res, req, { kind: 'empty', status: 204, headers }, stamp);
    });
    app.any(patternOf(path), (res, req) => {
      const error = new AppError('method_not_allowed', `Only ${allow} are supported here.`, {
        headers: { allow },
      });
      refuse(context, res, req, error);
    });
  }
  app.any('/*', (res, req) => refuse(context, res, req, notFound()));
}

/** Returns the path in the notation of uWebSockets.js. */
function patternOf(path: string): string {
  return path.replace(/:\w+\*$/, '*');
}

/** Returns the handler for the requests of one route. With `headOnly` (for HEAD) it sends no bodies. */
function handlerOf(prepared: PreparedRoute, context: HttpContext, headOnly: boolean) {
  return (res: HttpResponse, req: HttpRequest): void => {
    const request = new AdmittedRequest(stampOf(context, req, prepared.route), headOnly);
    new HttpExchange(prepared, context, res, req, request).receive(req);
  };
}

function stampOf(
  { allowedOrigin }: HttpContext,
  req: WireRequest,
  route?: Pick<Route, 'anyOrigin'>,
): ReplyStamp {
  const requestId = requestIdFor(req.getHeader('x-request-id'));
  return { requestId, allowedOrigin: route?.anyOrigin === true ? '*' : allowedOrigin?.(req) };
}

function refuse(context: HttpContext, res: HttpResponse, req: HttpRequest, error: AppError): void {
  const stamp = stampOf(context, req);
  const isForPerson = wantsPage(req.getMethod(), req.getUrl(), req.getHeader('accept'));
  const reply = isForPerson
    ? problemPage(error, req.getUrl())
    : problemReply(error, { requestId: stamp.requestId, instance: req.getUrl() });
  answer(res, req, reply, stamp);
}

/**
 * Answers a request that matches no route. When the bytes after the request cannot be trusted, the
 * connection ends with the answer, in the next turn: see `HttpExchange`.
 */
function answer(res: HttpResponse, req: HttpRequest, reply: EncodedReply, stamp: ReplyStamp): void {
  const close = framingOf(req) !== 'plain';
  const options = { ...stamp, headOnly: req.getMethod() === 'head', close, isCorked: !close };
  if (!close) {
    writeWhole(res, reply, options);
    return;
  }
  let isGone = false;
  res.onAborted(() => {
    isGone = true;
  });
  setImmediate(() => {
    if (!isGone) writeWhole(res, reply, options);
  });
}

function refuseTicket(): never {
  throw new AppError('unauthenticated', 'This server knows no tickets.');
}

function refusePage(): never {
  throw new AppError('unauthenticated', 'This server knows no pages.');
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
