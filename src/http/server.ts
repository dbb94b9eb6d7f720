/**
 * The HTTP server: mounts the routes, answers what no route does, and owns the listening socket. It ends in three steps:
 * `stopListening`, then requests in flight are answered, then every connection is closed.
 */
import type { HttpRequest, HttpResponse, TemplatedApp } from 'uWebSockets.js';
import { AppError, notFound } from '#src/core/errors.ts';
import type { Principal } from '#src/core/principal.ts';
import { ConnectionLimit, limitConnections } from './connection-limit.ts';
import type { Edge, EdgePorts } from './edge.ts';
import { OpenStreams } from './event-stream.ts';
import { createRequestHandler } from './exchange.ts';
import { GuessGuard } from './guess-guard.ts';
import { problemReply } from './problem.ts';
import { framingOf } from './request-head.ts';
import { requestIdFor } from './request-id.ts';
import type { Method, Route } from './route.ts';
import { listenOn, loadUws } from './uws.ts';
import { type EncodedReply, writeReply } from './write-reply.ts';

export interface ServerOptions extends EdgePorts {
  readonly routes: readonly Route[];
  readonly listen: { readonly host: string; readonly port: number };
  /** Counts the connections that are open at once, with those of other ports; more are closed. Default: one of its own. */
  readonly connections?: ConnectionLimit;
}

export interface Server extends AsyncDisposable {
  readonly host: string;
  /** The port that was asked for, or the one that was free when that was 0. */
  readonly port: number;
  /** No new connections; those that are open go on. Idempotent. */
  stopListening(): void;
  /** Ends the event streams whose caller matches, such as those of a revoked token. */
  endStreams(matches: (caller: Principal | undefined) => boolean): void;
  /** Ends the requests whose answer is late and whose caller may no longer make them: `refusal` says why not. */
  endPending(refusal: (caller: Principal, action: string) => AppError | undefined): void;
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

/** Settles once the server listens. Throws one clear line when it cannot, or when a route names an unknown action. */
export async function createServer(options: ServerOptions): Promise<Server> {
  const uws = await loadUws();
  const edge: Edge = {
    auth: options.auth,
    log: options.log,
    durable: options.durable ?? (() => undefined),
    observe: options.observe ?? ((read) => ({ result: read(), uncommitted: undefined })),
    draining: options.draining ?? (() => false),
    streamsPerWorkspace: options.streamsPerWorkspace ?? 0,
    heartbeatMs: options.heartbeatMs ?? DEFAULT_HEARTBEAT_MS,
    idempotency: options.idempotency,
    streams: new OpenStreams(),
    inFlight: new Set(),
    pendingAnswers: new Set(),
    guesses: new GuessGuard(),
  };
  const app = uws.App();
  limitConnections(app, options.connections ?? new ConnectionLimit());
  mount(app, options.routes, edge);
  const { host } = options.listen;
  const socket = listenOn(app, host, options.listen.port);
  const port = uws.us_socket_local_port(socket);

  let isListening = true;
  let closed: Promise<void> | undefined;
  const stopListening = () => {
    if (isListening) uws.us_listen_socket_close(socket);
    isListening = false;
  };
  const close = async (graceMs: number) => {
    stopListening();
    const deadline = Date.now() + graceMs;
    while (edge.inFlight.size > 0 && Date.now() < deadline) await later(GRACE_CHECK_MS);
    for (const stream of edge.streams) stream.end();
    for (const stream of edge.streams.leaving) stream.abandon();
    app.close();
  };
  const server: Server = {
    host,
    port,
    stopListening,
    endStreams(matches) {
      for (const stream of edge.streams) if (matches(stream.principal)) stream.end();
    },
    endPending(refusal) {
      for (const { caller, action, revoke } of edge.pendingAnswers) {
        const error = caller && action !== undefined ? refusal(caller, action) : undefined;
        if (error !== undefined) revoke(error);
      }
    },
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

function mount(app: TemplatedApp, routes: readonly Route[], edge: Edge): void {
  const methodsOf = new Map<string, Set<string>>();
  for (const route of routes) {
    if (route.access !== 'public' && edge.auth.requirements(route.access.action) === undefined) {
      throw new Error(`${route.operationId} needs the action ${route.access.action}, which is not declared`);
    }
    const methods = methodsOf.get(route.path) ?? new Set();
    if (methods.has(route.method)) throw new Error(`${route.method} ${route.path} is declared twice`);
    methodsOf.set(route.path, methods.add(route.method));
    app[MOUNT[route.method]](route.path, createRequestHandler(route, edge));
    if (route.method === 'GET') app.head(route.path, createRequestHandler(route, edge, true));
  }
  for (const [path, methods] of methodsOf) {
    if (methods.has('GET')) methods.add('HEAD');
    const allow = [...methods.add('OPTIONS')].sort().join(', ');
    app.options(path, (res, req) => {
      answer(
        res,
        req,
        { kind: 'empty', status: 204, headers: { allow } },
        requestIdFor(req.getHeader('x-request-id')),
      );
    });
    app.any(path, (res, req) => {
      const error = new AppError('method_not_allowed', `Only ${allow} are supported here.`, {
        headers: { allow },
      });
      refuse(res, req, error);
    });
  }
  app.any('/*', (res, req) => refuse(res, req, notFound()));
}

function refuse(res: HttpResponse, req: HttpRequest, error: AppError): void {
  const requestId = requestIdFor(req.getHeader('x-request-id'));
  answer(res, req, problemReply(error, { requestId, instance: req.getUrl() }), requestId);
}

/** What no route answers. When what comes behind the request cannot be trusted it is never looked at: see exchange.ts. */
function answer(res: HttpResponse, req: HttpRequest, reply: EncodedReply, requestId: string): void {
  const close = framingOf(req) !== 'plain';
  const options = { requestId, headOnly: req.getMethod() === 'head', close };
  if (!close) {
    writeReply(res, reply, options);
    return;
  }
  let isGone = false;
  res.onAborted(() => {
    isGone = true;
  });
  setImmediate(() => {
    if (!isGone) res.cork(() => writeReply(res, reply, options));
  });
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
