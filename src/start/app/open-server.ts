import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { ConnectionLimit } from '#src/http/edge/connection-limit.ts';
import { RequestLog } from '#src/http/edge/request-log.ts';
import { IdempotencyStore } from '#src/http/idempotency/idempotency-store.ts';
import { InnerRequests } from '#src/http/inner/inner-requests.ts';
import { STREAM_LIMIT } from '#src/http/reply/event-stream.ts';
import { createServer, type Server } from '#src/http/server.ts';
import { joinCluster } from './join-cluster.ts';
import { mountRoutes } from './mount-routes.ts';
import type { Opened } from './opened.ts';
import { openProxySocket, sharesNetwork } from './proxy-socket.ts';

/** Opens the HTTP server with the routes of everything that was opened. `socketPath` replaces the port of the settings. */
export async function openServer(
  opened: Omit<Opened, 'inner'>,
  socketPath: string | undefined,
  stack: AsyncDisposableStack,
): Promise<Server> {
  const { planes } = opened;
  const { config, log, member, cluster, metrics, store, identity, openRequests, permits, phase } = planes;
  const { limits } = identity;
  const { actorReporter, makeMirror } = planes.streams;
  const inner = new InnerRequests();
  const proxySocket = member === undefined ? await openProxySocket(config) : undefined; // else the primary's
  if (proxySocket !== undefined) stack.use(proxySocket);
  return stack.use(
    await createServer({
      listen: { host: config.host, port: config.port, socketPath },
      uwebsockets: config.uwebsockets,
      log,
      requestLog: new RequestLog({
        log,
        logsAll: config.logLevel === 'debug' || config.logLevel === 'trace',
        slowMs: config.slowRequestMs,
        refusesAll: () => phase.isDraining || config.readOnly,
      }),
      trustedProxies: config.trustedProxies,
      sharesNetwork: sharesNetwork(config),
      proxies: proxySocket?.descriptor,
      corsOrigins: config.corsOrigins,
      publicUrl: config.publicUrl,
      heartbeatMs: config.heartbeatS * 1000,
      streamsPerWorkspace: (workspaceId) => limits.of(workspaceId, 'streams'),
      open: openRequests,
      metrics,
      tracer: planes.tracer,
      redeemTicket: (ticket, purpose) => identity.tickets.redeem(ticket, purpose),
      pageTokens: planes.pageTokens,
      auth: identity.authenticator,
      durable: identity.durable,
      store,
      idempotency: stack.use(new IdempotencyStore(store, cluster)),
      phase,
      readOnly: config.readOnly,
      forwarding:
        member &&
        joinCluster(
          planes,
          {
            member,
            planes: [planes.agents.plane, planes.notebooks.plane, actorReporter],
            busySlots: planes.jobs.busySlots,
            makeMirror,
          },
          stack,
        ),
      connections: new ConnectionLimit(config.maxConnections, cluster.size),
      inner,
      workers: cluster.size,
      openStreamPermits: (inUse) =>
        // One process counts its streams. Permits are records, so each worker of a server that only reads counts its own.
        config.readOnly || cluster.incarnation === undefined
          ? undefined
          : permits.open({
              topic: 'stream-permits',
              limit: (workspaceId) => limits.of(workspaceId, 'streams'),
              named: STREAM_LIMIT,
              inUse,
            }),
      routes: mountRoutes({ ...opened, inner }),
    }),
  );
}
