/** The composition root: it opens the planes one after the other, connects them, and serves them. It decides nothing. */

import { openAgents } from '#src/agent/open-agents.ts';
import { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { OperatorWarning } from '#src/base/log/operator-warning.ts';
import { unlinkSealed } from '#src/datasource/keys/sealed-connections.ts';
import { SecretStore } from '#src/datasource/keys/secret-store.ts';
import { openDatasources } from '#src/datasource/open-datasources.ts';
import { ConnectionLimit } from '#src/http/edge/connection-limit.ts';
import { OpenRequests } from '#src/http/edge/open-requests.ts';
import { RequestLog } from '#src/http/edge/request-log.ts';
import { IdempotencyStore } from '#src/http/idempotency/idempotency-store.ts';
import { InnerRequests } from '#src/http/inner/inner-requests.ts';
import { STREAM_LIMIT } from '#src/http/reply/event-stream.ts';
import { createServer, type Server } from '#src/http/server.ts';
import { McpEndpoint } from '#src/mcp/endpoint.ts';
import { actorsOfAll } from '#src/operate/operators/actors-of-all.ts';
import { NodesWatch } from '#src/operate/operators/nodes-watch.ts';
import { openOperators } from '#src/operate/operators/open-operators.ts';
import { clusterWarnings, readinessOf } from '#src/operate/operators/readiness.ts';
import { StoredUsageCounter } from '#src/operate/operators/stored-usage.ts';
import { RunRetention } from '#src/operate/retention/run-retention.ts';
import { AuditTrail } from '#src/people/audit/audit-trail.ts';
import { QueryAudit } from '#src/people/audit/query-audit.ts';
import { type IdentityPlane, openIdentity } from '#src/people/auth/open-identity.ts';
import { PageTokens } from '#src/people/auth/page-tokens.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { ALONE, type Cluster } from '#src/runtime/homes/cluster.ts';
import { Environments } from '#src/runtime/sessions/environments.ts';
import { SYSTEM } from '#storage/keys.ts';
import { Removals } from '#storage/removals.ts';
import type { App, AppOptions } from './app/app-interface.ts';
import { beginBackgroundWork, forwardAudit } from './app/background-work.ts';
import { controlByPrimary, controlOfNodes } from './app/control-of-nodes.ts';
import { endWork } from './app/end-work.ts';
import { joinCluster } from './app/join-cluster.ts';
import { mountRoutes } from './app/mount-routes.ts';
import { openFiles } from './app/open-files.ts';
import { openLocalModel } from './app/open-local-model.ts';
import { type NotebookPlane, openNotebooks } from './app/open-notebooks.ts';
import { openPackages } from './app/open-packages.ts';
import { openRuns } from './app/open-runs.ts';
import { openStorage } from './app/open-storage.ts';
import { openStreams } from './app/open-streams.ts';
import { openTracer } from './app/open-tracer.ts';
import { Permits } from './app/permits.ts';
import { openProxySocket, sharesNetwork } from './app/proxy-socket.ts';

/**
 * Opens everything and listens. Disposing the app drains it: running runs fail with `server_stopped`, sessions stay open
 * in the store.
 */
export async function createApp(options: AppOptions): Promise<App> {
  const stack = new AsyncDisposableStack();
  try {
    return await open(options, stack);
  } catch (error) {
    // An error of the closing must not hide the error that made the server close.
    await Promise.allSettled([stack[Symbol.asyncDispose]()]);
    await Promise.allSettled([options.prerequisites[Symbol.asyncDispose]()]);
    throw error;
  }
}

/**
 * Opens everything in this order. `stack` closes it in the opposite order, so a part may use only parts that were opened before it.
 * It reaches later parts through functions, which are called once all are open.
 */
async function open(options: AppOptions, stack: AsyncDisposableStack): Promise<App> {
  const phase: ServingPhase = {
    port: undefined,
    isRetiring: false,
    isLeaving: false,
    isDraining: false,
  };
  const ground = await openGround(options, stack);
  const runs = openRuns(ground);
  const planes: Planes = await openPlanes(ground, runs, phase, stack);
  const upkeep = openUpkeep(ground, runs, planes, stack);
  const operators = openOperation(ground, planes, upkeep.warnings, phase, stack);
  const { socketPath } = options;
  const server = await openServer({ ground, runs, planes, operators, upkeep, phase, socketPath }, stack);
  phase.port = server.port;
  operators.begin();
  return {
    server,
    url: `http://${server.host.includes(':') ? `[${server.host}]` : server.host}:${server.port}`,
    bootstrapped: ground.identity.bootstrapped,
    kernelsReady: options.prerequisites.kernelsReady,
    requestCount: () => ground.openRequests.count,
    load: () => ({
      sessions: planes.notebooks.workspacesWithKernels().length,
      runs: runs.runs.actors.residents().length,
      streams: ground.openRequests.load().streams,
    }),
    retire() {
      phase.isRetiring = true;
    },
    stored: () => ground.store.durable(),
    async [Symbol.asyncDispose]() {
      const { drainS } = options.config;
      phase.isLeaving = !phase.isRetiring;
      if (phase.isLeaving && drainS > 0) await new Promise((resolve) => setTimeout(resolve, drainS * 1000));
      phase.isDraining = true;
      server.stopListening();
      await endWork({
        planes: [planes.agents.plane, planes.notebooks.plane],
        operatorStreams: [ground.streams.actorEvents, operators],
        store: ground.store,
        othersSuspended: () => options.member?.channel.suspended(),
      });
      await stack[Symbol.asyncDispose]();
    },
  };
}

/** The phase of the server's life, for parts that are opened before it listens. */
interface ServingPhase {
  port: number | undefined;
  /** Another worker takes the place of this one. */
  isRetiring: boolean;
  /** Load balancers should send no new requests; requests that they still send are answered. */
  isLeaving: boolean;
  isDraining: boolean;
}

type Ground = Awaited<ReturnType<typeof openGround>>;
type Runs = ReturnType<typeof openRuns>;
type Operators = ReturnType<typeof openOperation>;

interface Planes {
  readonly audit: AuditTrail;
  readonly datasources: Awaited<ReturnType<typeof openDatasources>>;
  readonly environments: Environments;
  readonly packages: ReturnType<typeof openPackages>;
  readonly files: ReturnType<typeof openFiles>;
  readonly notebooks: NotebookPlane;
  readonly agents: ReturnType<typeof openAgents>;
  /** Signing in with the identity provider; undefined when the settings name none. */
  readonly provider: ReturnType<IdentityPlane['openProvider']>;
  readonly pageTokens: PageTokens;
}

/** Opens the parts that all planes share: the store, the callers, the actors and their streams, the kernel host. */
async function openGround(options: AppOptions, stack: AsyncDisposableStack) {
  const { config, log, prerequisites, onFatal, member } = options;
  const cluster: Cluster = member?.peers ?? ALONE;
  const { directory, host, metrics } = prerequisites;
  const owns = cluster.owns.bind(cluster);
  stack.use(directory);
  const { store, condition, warnings } = await openStorage(
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
  const streams = openStreams({ config, cluster, actors, store, metrics }, stack);
  if (prerequisites.remote !== undefined) stack.use(prerequisites.remote); // closes after the kernels have ended
  stack.use(host);
  // After the server has closed, so that nothing commands an actor any more, and before the kernels that actors write to.
  stack.defer(() => actors.stopAll());
  const removals = stack.use(
    new Removals(store, (error) => log.error({ err: error }, 'what was deleted could not be removed'), owns),
  );
  const permits = new Permits(store, cluster);
  identity.limits.onChange((workspaceId) => permits.settle(workspaceId));
  return {
    config,
    log,
    prerequisites,
    member,
    cluster,
    owns,
    directory,
    host,
    metrics,
    store,
    condition,
    storageWarnings: warnings,
    identity,
    limits: identity.limits,
    openRequests,
    tracer,
    actors,
    streams,
    removals,
    permits,
  };
}

/** Opens the planes that users work with: datasources, packages, notebooks and agents. */
async function openPlanes(
  ground: Ground,
  { runs, runDeletion }: Runs,
  phase: ServingPhase,
  stack: AsyncDisposableStack,
): Promise<Planes> {
  const { config, log, prerequisites, cluster, owns, directory, host, metrics, store } = ground;
  const { identity, limits, tracer, actors, streams, removals } = ground;
  const ownPorts = () => (phase.port === undefined ? [] : [phase.port]);
  const audit = new AuditTrail(store, (error) =>
    log.error({ err: error }, 'queries of datasources could not be noted in the audit'),
  );
  const datasources = stack.use(
    await openDatasources({
      store,
      cluster,
      announce: identity.announce,
      audit,
      queryAudit: stack.use(new QueryAudit(audit)),
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
  const files = openFiles(
    { limits, directory, log, cluster, inUse: () => notebooks.workspacesWithKernels() },
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
      files,
      members: identity.members,
      limits,
      queries: datasources.queries,
      vault,
      makeStream: streams.makeStream,
      pageStreams: streams.pageStreams,
      runDeletion,
      removals,
      closeEnvironment: (workspaceId, id) => environments.close(workspaceId, id),
      agents: {
        of: (...notebook) => agents.ofNotebook(...notebook),
        watch: (...notebook) => agents.watchNotebook(...notebook),
      },
      onSessionClosing: (...session) => agents.sessions.closeBound(...session),
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
    makeStream: streams.makeConversationStream,
    notebooks: notebooks.forAgents,
    datasources: datasources.forAgents,
    vault,
    owns,
    worker: cluster.worker,
    localModel: openLocalModel({ config, log, host, startElsewhere: prerequisites.startModel }, stack),
  });
  const keys = (keyId?: string) =>
    keyId === undefined ? datasources.keys.ring : datasources.keys.ringWith(keyId);
  const provider = identity.openProvider(config, vault, keys, stack);
  const pageTokens = new PageTokens(identity.authenticator, keys);
  return { audit, datasources, environments, packages, files, notebooks, agents, provider, pageTokens };
}

/** Begins the work that nobody waits for: removing deleted workspaces, retention and forwarding the audit. */
function openUpkeep(
  { config, cluster, store, log, owns, identity, actors, removals, permits }: Ground,
  { runDeletion }: Runs,
  { audit, environments }: Planes,
  stack: AsyncDisposableStack,
) {
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
  const upkeep = {
    config,
    cluster,
    store,
    log,
    removals,
    runs: new RunRetention(store, runDeletion, owns),
    audit,
  };
  const retention = beginBackgroundWork(upkeep, stack);
  return { workspaceDeletion, retention, warnings: () => [...auditWarnings(), ...retention.warnings] };
}

/** Opens the views of operators, and reports whether the server is ready. */
function openOperation(
  ground: Ground,
  { notebooks }: Planes,
  upkeepWarnings: () => readonly OperatorWarning[],
  phase: ServingPhase,
  stack: AsyncDisposableStack,
) {
  const { config, log, member, cluster, directory, host, metrics, store, actors } = ground;
  const { condition, openRequests, storageWarnings, streams } = ground;
  const control = openNodesControl(ground);
  const nodesWatch = stack.use(
    new NodesWatch(config.kernelNodes === 'none' ? undefined : () => control.list()),
  );
  const warnings = () => [
    ...storageWarnings(),
    ...upkeepWarnings(),
    ...clusterWarnings(cluster),
    ...nodesWatch.warnings(),
  ];
  const readiness = () => {
    host.attend();
    return readinessOf({ isLeaving: phase.isLeaving, host, warnings: warnings() });
  };
  const operators = openOperators(
    {
      config,
      cluster,
      store,
      log,
      metrics,
      actors,
      host,
      storePath: directory.storePath,
      kernels: () => notebooks.kernels(),
      askNodes: askNodes(ground),
      primaryLog: async () => (await member?.channel.ask('log')) ?? [],
      stream: streams.serverStream,
      load: () => openRequests.load(),
      warnings,
      condition,
      isReady: () => readiness().ready,
      nodes: () => (cluster.owns(SYSTEM) ? nodesWatch.latest : { ...nodesWatch.latest, enabled: false }),
    },
    stack,
  );
  return { ...operators, readiness, control };
}

/** Returns the control of the kernel nodes, which are connected to this process or to its primary. */
function openNodesControl({ member, prerequisites }: Ground) {
  return member === undefined ? controlOfNodes(prerequisites.remote) : controlByPrimary(member.channel);
}

/** Returns the question about the use of kernels on nodes; undefined when there are no nodes. */
function askNodes({ config, member, prerequisites }: Ground) {
  if (config.kernelNodes === 'none') return undefined;
  if (member === undefined) return async () => (await prerequisites.remote?.nodes?.use()) ?? new Map();
  return async () => new Map(await member.channel.ask('use-of-nodes'));
}

interface Opened {
  readonly ground: Ground;
  readonly runs: Runs;
  readonly planes: Planes;
  readonly operators: Operators;
  readonly upkeep: ReturnType<typeof openUpkeep>;
  readonly phase: ServingPhase;
  readonly socketPath: string | undefined;
}

/** Opens the HTTP server with the routes of everything that was opened. */
async function openServer(
  { ground, runs, planes, operators, upkeep, phase, socketPath }: Opened,
  stack: AsyncDisposableStack,
): Promise<Server> {
  const { config, log, member, cluster, metrics, store } = ground;
  const { identity, limits, openRequests, permits, tracer, actors, streams } = ground;
  const { audit, datasources, environments, packages, notebooks, agents } = planes;
  const { actorEvents, actorReporter, makeMirror } = streams;
  const inner = new InnerRequests();
  const proxySocket = member === undefined ? await openProxySocket(config) : undefined; // else the primary has it
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
      tracer,
      redeemTicket: (ticket, purpose) => identity.tickets.redeem(ticket, purpose),
      pageCaller: (credential) => planes.pageTokens.principalOf(credential),
      auth: identity.authenticator,
      durable: identity.durable,
      store,
      idempotency: stack.use(new IdempotencyStore(store, { cluster })),
      phase,
      readOnly: config.readOnly,
      forwarding:
        member &&
        joinCluster(
          { member, store, actors, planes: [agents.plane, notebooks.plane, actorReporter], makeMirror },
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
      routes: mountRoutes({
        store,
        cluster,
        config,
        actors: actorsOfAll(actors, store, cluster),
        actorEvents,
        ...runs,
        environments,
        identity,
        provider: planes.provider,
        log,
        workspaceDeletion: upkeep.workspaceDeletion,
        retention: upkeep.retention,
        notebooks,
        pageTokens: planes.pageTokens,
        agents,
        audit,
        datasources,
        readiness: operators.readiness,
        isLeaving: () => phase.isLeaving,
        files: planes.files,
        packages: packages.workspaces,
        storedUsage: new StoredUsageCounter(store),
        observation: operators.observation,
        nodes: operators.control,
        mcp: new McpEndpoint({ cluster, datasources: datasources.forAgents, log }),
        inner,
      }),
    }),
  );
}
