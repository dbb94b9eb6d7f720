/** Defaults for the members of a server that a test does not look at: it stores nothing, logs nothing and has no limits. */
import { AppError } from '#src/base/errors/errors.ts';
import { ConnectionLimit } from '#src/http/edge/connection-limit.ts';
import type { StoreOfRequests } from '#src/http/edge/http-context.ts';
import { OpenRequests } from '#src/http/edge/open-requests.ts';
import { RequestLog } from '#src/http/edge/request-log.ts';
import { InnerRequests } from '#src/http/inner/inner-requests.ts';
import type { ErrorLog } from '#src/http/reply/problem.ts';
import type { ServerOptions } from '#src/http/server.ts';

const nothing = () => undefined;

/** For a server whose handlers store nothing. */
export const NO_STORE: StoreOfRequests = {
  isFull: false,
  decide: (decision) => decision(),
  observe: (read, ...of) => ({ result: read(...of), uncommitted: undefined }),
};

const refuse = (): never => {
  throw new AppError('unauthenticated', 'This server knows no tickets and no pages.');
};

/** Returns a log of requests that writes nothing. */
function silentRequestLog(): RequestLog {
  return new RequestLog({
    log: { debug: nothing, info: nothing, warn: nothing },
    logsAll: false,
    slowMs: 0,
  });
}

/** Returns everything but the routes and the callers. The server listens on a free port. */
export function httpDefaults(log: ErrorLog): Omit<ServerOptions, 'routes' | 'auth'> {
  return {
    log,
    listen: { host: '127.0.0.1', port: 0 },
    proxies: undefined,
    uwebsockets: undefined,
    connections: new ConnectionLimit(),
    inner: new InnerRequests(),
    durable: nothing,
    open: new OpenRequests(log),
    store: NO_STORE,
    idempotency: { begin: () => ({ kind: 'proceed', complete: nothing, abandon: nothing }) },
    publicUrl: undefined,
    phase: { isDraining: false },
    readOnly: false,
    streamsPerWorkspace: () => 0,
    openStreamPermits: nothing,
    heartbeatMs: 10_000,
    workers: 1,
    requestLog: silentRequestLog(),
    metrics: undefined,
    tracer: undefined,
    trustedProxies: [],
    sharesNetwork: false,
    redeemTicket: refuse,
    pageTokens: { principalOf: refuse },
    forwarding: undefined,
    corsOrigins: [],
  };
}
