/**
 * The HTTP server: it mounts the routes, answers requests that match no route, and owns the listening socket. The server closes
 * in three steps: it stops listening, answers the requests in flight, and closes every connection.
 */

import type { HttpRequest, HttpResponse, TemplatedApp } from 'uWebSockets.js';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { Method } from '#src/contract/wire/paths.ts';
import { AdmittedRequest, type PreparedRoute, prepareRoute } from './edge/admission.ts';
import { createAnswerPlaces } from './edge/answer-places.ts';
import { AuthThrottle } from './edge/auth-throttle.ts';
import { BodyMemory } from './edge/body-memory.ts';
import { createClientAddresses } from './edge/client-address.ts';
import { type ConnectionLimit, limitConnections } from './edge/connection-limit.ts';
import { createAllowedOrigins, preflightHeaders } from './edge/cors.ts';
import { HttpExchange } from './edge/exchange.ts';
import type { HttpContext, HttpDependencies } from './edge/http-context.ts';
import type { OpenRequests } from './edge/open-requests.ts';
import { framingOf, requestIdFor } from './edge/request-head.ts';
import { WorkspaceTurns } from './edge/workspace-turns.ts';
import type { InnerRequests } from './inner/inner-requests.ts';
import { servePeers } from './peer/serve-peers.ts';
import type { OpenStreams } from './reply/event-stream.ts';
import { problemReply } from './reply/problem.ts';
import { problemPage, wantsPage } from './reply/problem-page.ts';
import { type EncodedReply, type ReplyStamp, writeWhole } from './reply/write-reply.ts';
import type { Route } from './route.ts';
import { createUwsApp, type ListenAddress, listenForProxies, listenOn, loadUws } from './uws.ts';
import type { WireRequest } from './wire-exchange.ts';

export interface ServerOptions extends HttpDependencies {
  readonly routes: readonly Route[];
  readonly listen: ListenAddress;
  /** The descriptor of the bound unix socket to which proxies of this machine connect. The server closes it. */
  readonly proxies: number | undefined;
  /** The path of a copy of uWebSockets.js to use in place of the copy of this installation. */
  readonly uwebsockets: string | undefined;
  /** Counts the open connections, together with those of other ports. */
  readonly connections: ConnectionLimit;
  /** Receives the routes, for requests that the server makes to itself. */
  readonly inner: InnerRequests;
}

export interface Server extends AsyncDisposable {
  readonly host: string;
  /** The configured port, or the chosen free port if the configured port is 0. */
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
const GRACE_CHECK_MS = 5;

/** Resolves once the server listens. Rejects with an error of one line when it cannot listen, or when a route is misdeclared. */
export async function createServer(options: ServerOptions): Promise<Server> {
  const { routes, listen, proxies: ownProxies, uwebsockets, connections, inner, ...dependencies } = options;
  const { open, forwarding, trustedProxies, sharesNetwork } = dependencies;
  const uws = await loadUws(uwebsockets);
  const { ofPort, ofProxySocket } = createClientAddresses({ trusted: trustedProxies, sharesNetwork });
  const context: HttpContext = {
    ...dependencies,
    turns: new WorkspaceTurns(),
    bodies: new BodyMemory(),
    answers: new BodyMemory({ alwaysTakesOne: true }),
    answerPlaces: createAnswerPlaces(),
    streamPermits: dependencies.openStreamPermits((workspaceId) => open.streams.of(workspaceId)),
    authThrottle: new AuthThrottle(undefined, dependencies.workers),
    clientAddress: ofPort,
    allowedOrigin: createAllowedOrigins(dependencies.corsOrigins),
  };
  const prepared = prepare(routes, context);
  const createMounted = (served: HttpContext): TemplatedApp => {
    const app = createUwsApp(uws);
    limitConnections(app, connections);
    mount(app, prepared, served);
    return app;
  };
  const app = createMounted(context);
  inner.attach(prepared, context);
  const { host } = listen;
  const handleForwarded = servePeers(prepared, context, (req, route) => stampOf(context, req, route));
  const shared = await forwarding?.join(handleForwarded, () => open.busyHomes());
  const listening = await listenOn(uws, app, shared === undefined ? listen : { host, ...shared });
  const proxies = shared === undefined ? ownProxies : shared.proxies;
  // Proxies have an app of their own, because a connection does not say on which socket it was accepted.
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
    end(open.streams); // ended first, because other workers wait for the streams that they relay
    const isBusy = () => open.inFlight.size + open.mirrored.size > 0;
    while (isBusy() && Date.now() < deadline) await later(GRACE_CHECK_MS);
    end(open.streams);
    for (const stream of open.mirrored) stream.resync('server_stopping'); // the homes of these streams may continue
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

/** Returns the prepared routes. Throws when a route is misdeclared. */
function prepare(routes: readonly Route[], { auth, metrics }: HttpContext): PreparedRoute[] {
  const declared = new Set<string>();
  return routes.map((route) => {
    const { access, operationId } = route;
    const isDeclared = typeof access === 'string' || auth.requirements(access.action) !== undefined;
    invariant(isDeclared, 'A route needs an action that is declared.', operationId);
    const named = `${route.method} ${route.path}`;
    invariant(!declared.has(named), 'A method of a path is declared once.', named);
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

/** Returns the handler for the requests of one route. With `headOnly` (for HEAD), the handler sends no bodies. */
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

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
