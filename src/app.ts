/** The composition root: it opens the planes one after the other, connects them, and serves them. It decides nothing. */

import { actorsOfAll } from '#src/operators/actors-of-all.ts';
import { openOperators } from '#src/operators/open-operators.ts';
import { clusterWarnings, readinessOf } from '#src/operators/readiness.ts';
import { StoredUsageCounter } from '#src/operators/stored-usage.ts';
import { RunRetention } from '#src/retention/run-retention.ts';
import { RUN_LIMIT, USER_RUN_LIMIT } from '#src/runs/run-limits.ts';
import type { LimitOf } from '#storage/records/workspace-limits.ts';
import { Removals } from '#storage/removals.ts';
import { permitSubject, subjectParts } from '#storage/workspace-permits.ts';
import { ActorRuntime } from './actors/runtime.ts';
import { openAgents } from './agent/open-agents.ts';
import type { App, AppOptions } from './app/app-interface.ts';
import { beginBackgroundWork, forwardAudit } from './app/background-work.ts';
import { endWork } from './app/end-work.ts';
import { joinCluster } from './app/join-cluster.ts';
import { mountRoutes } from './app/mount-routes.ts';
import { openFiles } from './app/open-files.ts';
import { openLocalModel } from './app/open-local-model.ts';
import { NOTEBOOK, type NotebookPlane, openNotebooks } from './app/open-notebooks.ts';
import { openPackages } from './app/open-packages.ts';
import { openStorage } from './app/open-storage.ts';
import { openStreams } from './app/open-streams.ts';
import { openTracer } from './app/open-tracer.ts';
import { Permits } from './app/permits.ts';
import { serverSettings } from './app/server-settings.ts';
import { AuditTrail } from './audit/audit-trail.ts';
import { QueryAudit } from './audit/query-audit.ts';
import { openIdentity } from './auth/open-identity.ts';
import { ALONE, type Cluster } from './cluster/cluster.ts';
import { AsyncDisposableStack } from './core/async-disposable-stack.ts';
import { unlinkSealed } from './datasource/keys/sealed-connections.ts';
import { SecretStore } from './datasource/keys/secret-store.ts';
import { openDatasources } from './datasource/open-datasources.ts';
import { ConnectionLimit } from './http/edge/connection-limit.ts';
import { OpenRequests } from './http/edge/open-requests.ts';
import { IdempotencyStore } from './http/idempotency/idempotency-store.ts';
import { InnerRequests } from './http/inner/inner-requests.ts';
import { STREAM_LIMIT } from './http/reply/event-stream.ts';
import { createServer } from './http/server.ts';
import { McpEndpoint } from './mcp/endpoint.ts';
import { RunDeletion } from './runs/run-deletion.ts';
import { RunRepository } from './runs/run-repository.ts';
import { SettledRuns } from './runs/settled-runs.ts';
import { Environments } from './sessions/environments.ts';

/**
 * Opens everything and listens. Disposing the app drains it: running runs fail with `server_stopped`, sessions stay open
 * in the store.
 */
export async function createApp(options: AppOptions): Promise<App> {
  const stack = new AsyncDisposableStack();
  try {
    return await open(options, stack);
  } catch (error) {
    // An error while closing must not hide the error for which the server closes.
    await Promise.allSettled([stack[Symbol.asyncDispose]()]);
    await Promise.allSettled([options.prerequisites[Symbol.asyncDispose]()]);
    throw error;
  }
}

/** `stack` closes its resources in the opposite order, so the order of the statements matters. */
async function open(options: AppOptions, stack: AsyncDisposableStack): Promise<App> {
  const { config, log, prerequisites, onFatal, member } = options;
  const cluster: Cluster = member?.peers ?? ALONE;
  const { directory, host, metrics } = prerequisites;
  const owns = (workspaceId: string, id?: string) => cluster.owns(workspaceId, id);
  let port: number | undefined;
  const ownPorts = () => (port === undefined ? [] : [port]);
  let draining = false;
  /** Load balancers should send nothing new any more; requests that they still send are answered. */
  let isLeaving = false;
  stack.use(directory);
  const { store, condition, ...storage } = await openStorage(
    { config, directory, log, cluster, onFatal },
    stack,
  );
  const identity = await openIdentity({
    ...config,
    store,
    cluster,
    log,
    dataDir: directory.root,
    limits: {
      sessions: config.workspaceMaxSessions,
      runs: config.workspaceMaxRuns,
      streams: config.workspaceMaxSubscribers,
      filesMb: config.workspaceFilesMb,
      files: config.workspaceMaxFiles,
      sessionsPerUser: config.userMaxSessions,
      runsPerUser: config.userMaxRuns,
    },
  });
  const { limits } = identity;
  const openRequests = new OpenRequests(log);
  stack.use(
    identity.onRevocation((isRevoked) => {
      openRequests.endStreams((caller, action) => isRevoked(caller, action));
      openRequests.endPending((caller, action) => identity.authenticator.renew(caller, action));
    }),
  );
  const tracer = await openTracer({ config, log, metrics }, stack);
  const actors = new ActorRuntime(store, log, metrics, {
    own: cluster.incarnation,
    livesElsewhere: (owner) => cluster.livesElsewhere(owner),
    owns,
  });
  const { makeStream, makeConversationStream, makeMirror, actorEvents, actorReporter, serverStream } =
    openStreams({ config, cluster, actors, store, metrics }, stack);
  stack.use(host);
  // After the server has closed, so that nothing commands an actor any more, and before the kernels that actors write to.
  stack.defer(() => actors.stopAll());
  const removals = stack.use(
    new Removals(store, (error) => log.error({ err: error }, 'what was deleted could not be removed'), owns),
  );
  const permits = new Permits(store, cluster);
  const runLimit: LimitOf = (workspaceId) => limits.of(workspaceId, 'runs');
  const userRunLimit: LimitOf = (workspaceId) => limits.of(workspaceId, 'runsPerUser');
  const ofWorkspaces = permits.open({
    topic: 'run-permits',
    limit: runLimit,
    named: RUN_LIMIT,
    inUse: (workspaceId) => runs.limits.inProgress(workspaceId),
  });
  const ofUsers = permits.open({
    topic: 'user-run-permits',
    limit: userRunLimit,
    named: USER_RUN_LIMIT,
    inUse: (subject) => runs.limits.inProgress(...subjectParts(subject)),
    subjectsIn: (workspaceId) =>
      [...runs.limits.usersWithRuns(workspaceId)].map((userId) => permitSubject(workspaceId, userId)),
  });
  limits.onChange((workspaceId) => permits.settle(workspaceId));
  const runs: RunRepository = new RunRepository(store, actors, {
    limits: {
      limit: runLimit,
      userLimit: userRunLimit,
      permits: ofWorkspaces && ofUsers && { ofWorkspaces, ofUsers },
    },
    metrics,
    tracer,
    isDeleted: (workspaceId, sessionId) =>
      removals.isPending({ kind: NOTEBOOK, workspaceId, home: sessionId, id: sessionId }),
    settled: cluster.size > 1 ? new SettledRuns(store, cluster) : undefined,
  });
  const runDeletion = new RunDeletion(store, runs, removals);
  const audit = new AuditTrail(store, (error) =>
    log.error({ err: error }, 'queries of datasources could not be noted in the audit'),
  );
  const queryAudit = stack.use(new QueryAudit(audit));
  const datasources = stack.use(
    await openDatasources({
      store,
      cluster,
      announce: identity.announce,
      audit,
      queryAudit,
      metrics,
      tracer,
      keyringFile: config.keyringFile,
      listenHost: config.host,
      ownPorts,
      egressAllow: config.egressAllow,
      workspaceFiles: (workspaceId) => directory.workspaceFiles(workspaceId),
      startEngine: (launch) => host.startEngine(launch),
    }),
  );
  const environments = new Environments(actors, store);
  const vault = new SecretStore(store, datasources.keys);
  const shared = { store, runtime: actors, runs, environments: environments.actors, log, metrics };
  const packages = openPackages(
    {
      config,
      cluster,
      log,
      prerequisites,
      ownPorts,
      store,
      sessionsWithKernels: (workspaceId) => notebooks.sessionsWithKernels(workspaceId),
    },
    stack,
  );
  const notebooks: NotebookPlane = openNotebooks(
    {
      ...shared,
      config,
      cluster,
      prerequisites,
      kernels: packages.kernels,
      packages: packages.workspaces,
      members: identity.members,
      limits,
      queries: datasources.queries,
      vault,
      makeStream,
      runDeletion,
      removals,
      onSessionClosing: (workspaceId, sessionId) => agents.sessions.closeBound(workspaceId, sessionId),
      prepareConversationDeletion: (workspaceId, id) => agents.deletion.prepare(workspaceId, id),
    },
    stack,
  );
  const agents = openAgents({
    ...shared,
    tracer,
    removals,
    removePrompts: (workspaceId, id) => runDeletion.removeRuns('agent', workspaceId, id),
    settings: config,
    makeStream: makeConversationStream,
    notebooks: notebooks.forAgents,
    datasources: datasources.forAgents,
    vault,
    owns,
    localModel: openLocalModel({ config, log, host, startElsewhere: prerequisites.startModel }, stack),
  });
  const workspaceDeletion = identity.openDeletion(removals, {
    mayBeInUse: (workspaceId) => environments.areInUse(workspaceId),
    isActive: (workspaceId) => actors.isActive(workspaceId) || environments.areInUseNow(workspaceId),
    forget: (workspaceId) => {
      actors.eraseWorkspace(workspaceId);
      permits.forget(workspaceId);
    },
    deleted: (workspaceId) => log.info({ workspaceId }, 'a workspace was deleted'),
    unlink: unlinkSealed,
  });
  const auditWarnings = forwardAudit({ config, cluster, store, log, audit }, stack);
  beginBackgroundWork(
    { config, cluster, store, log, removals, runs: new RunRetention(store, runDeletion, owns), audit },
    stack,
  );
  const files = openFiles(
    { limits, directory, log, cluster, inUse: () => notebooks.workspacesWithKernels() },
    stack,
  );
  const connections = new ConnectionLimit(config.maxConnections, cluster.size);
  const warnings = () => [...storage.warnings(), ...auditWarnings(), ...clusterWarnings(cluster)];
  const readiness = () => {
    host.attend();
    return readinessOf({ isLeaving, host, warnings: warnings() });
  };
  const operations = openOperators(
    {
      ...shared,
      config,
      cluster,
      actors,
      host,
      storePath: directory.storePath,
      kernels: () => notebooks.kernels(),
      primaryLog: async () => (await member?.channel.ask('log')) ?? [],
      stream: serverStream,
      load: () => openRequests.load(),
      warnings,
      condition,
      isReady: () => readiness().ready,
    },
    stack,
  );
  const inner = new InnerRequests();
  const mcp = new McpEndpoint({ cluster, datasources: datasources.forAgents, log });
  const server = stack.use(
    await createServer({
      ...serverSettings(config, log),
      streamsPerWorkspace: (workspaceId) => limits.of(workspaceId, 'streams'),
      open: openRequests,
      metrics,
      tracer,
      redeemTicket: (ticket, purpose) => identity.tickets.redeem(ticket, purpose),
      auth: identity.authenticator,
      durable: () => identity.durable(),
      decide: (decision) => store.decide(decision),
      observe: (read) => store.observe(read),
      idempotency: stack.use(new IdempotencyStore(store, { cluster })),
      draining: () => draining,
      full: () => store.isFull,
      forwarding:
        member &&
        joinCluster(
          { member, store, actors, planes: [agents.plane, notebooks.plane, actorReporter], makeMirror },
          stack,
        ),
      connections,
      inner,
      workers: cluster.size,
      openStreamPermits: (inUse) =>
        permits.open({
          topic: 'stream-permits',
          limit: (workspaceId) => limits.of(workspaceId, 'streams'),
          named: STREAM_LIMIT,
          inUse,
        }),
      routes: mountRoutes({
        store,
        cluster,
        config,
        actors: actorsOfAll(actors, store, cluster),
        actorEvents,
        runs,
        runDeletion,
        environments,
        identity,
        workspaceDeletion,
        notebooks,
        agents,
        audit,
        datasources,
        readiness,
        files,
        packages: packages.workspaces,
        storedUsage: new StoredUsageCounter(store),
        observation: operations.observation,
        mcp,
        inner,
      }),
    }),
  );
  port = server.port;
  operations.begin();
  return {
    server,
    url: `http://${server.host.includes(':') ? `[${server.host}]` : server.host}:${server.port}`,
    bootstrapped: identity.bootstrapped,
    kernelsReady: prerequisites.kernelsReady,
    load: () => ({
      sessions: notebooks.workspacesWithKernels().length,
      runs: runs.actors.residents().length,
      streams: openRequests.load().streams,
    }),
    stored: () => store.durable(),
    async [Symbol.asyncDispose]() {
      isLeaving = true;
      if (config.drainS > 0) await new Promise((resolve) => setTimeout(resolve, config.drainS * 1000));
      draining = true;
      server.stopListening();
      await endWork({
        planes: [agents.plane, notebooks.plane],
        operatorStreams: [actorEvents, operations],
        store,
        othersSuspended: () => member?.channel.suspended(),
      });
      await stack[Symbol.asyncDispose]();
    },
  };
}
