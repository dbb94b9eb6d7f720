/**
 * The composition root: opens what the server owns, connects the parts through their ports, mounts the routes. Nothing
 * here decides anything.
 */

import { connectionSchemaDocument } from '#src/datasource/connectors/connection-schema.ts';
import { SecretStore } from '#src/datasource/keys/secret-store.ts';
import { KernelQueryHandler } from '#src/datasource/query/kernel-query-handler.ts';
import { openStore } from '#storage/open-store.ts';
import { ActorRuntime } from './actors/runtime.ts';
import { openAgents } from './agent/open-agents.ts';
import { AuditTrail } from './audit/audit-trail.ts';
import { QueryAudit } from './audit/query-audit.ts';
import { type Bootstrapped, bootstrap } from './auth/bootstrap.ts';
import { Callers } from './auth/callers.ts';
import { Identity } from './auth/identity.ts';
import { Members } from './auth/members.ts';
import { AccessTokens } from './auth/tokens.ts';
import { Workspaces } from './auth/workspaces.ts';
import type { Config } from './config.ts';
import { Closing } from './core/closing.ts';
import type { Failure } from './core/errors.ts';
import type { SessionId } from './core/ids.ts';
import type { Log } from './core/log.ts';
import { VERSION } from './core/version.ts';
import { openDatasources } from './datasource/open-datasources.ts';
import { Heartbeats } from './events/heartbeats.ts';
import { SessionStream } from './events/session-stream.ts';
import { StreamBudget } from './events/stream-budget.ts';
import type { Foundation } from './foundation.ts';
import { withAudit } from './http/audited-routes.ts';
import { ConnectionLimit } from './http/connection-limit.ts';
import { openHttp10Relay } from './http/http10-relay.ts';
import { ReceiptBook } from './http/receipt-book.ts';
import { accessTokenRoutes } from './http/routes/access-tokens.ts';
import { actorRoutes } from './http/routes/actors.ts';
import { agentSessionGrantRoutes } from './http/routes/agent-session-grants.ts';
import { agentSessionRoutes } from './http/routes/agent-sessions.ts';
import { auditRoutes } from './http/routes/audit.ts';
import { codeRoutes } from './http/routes/code.ts';
import { datasourceConnectionRoutes } from './http/routes/datasource-connections.ts';
import { datasourceGrantRoutes } from './http/routes/datasource-grants.ts';
import { datasourceRoutes } from './http/routes/datasources.ts';
import { executionEnvironmentRoutes } from './http/routes/execution-environments.ts';
import { executionRoutes } from './http/routes/executions.ts';
import { frontEndRoutes } from './http/routes/front-end.ts';
import { healthRoutes } from './http/routes/health.ts';
import { keyRoutes } from './http/routes/keys.ts';
import { memberRoutes } from './http/routes/members.ts';
import { modelRoutes } from './http/routes/models.ts';
import { notebookFileRoutes } from './http/routes/notebook-files.ts';
import { notebookSessionRoutes } from './http/routes/notebook-sessions.ts';
import { notebookRoutes } from './http/routes/notebooks.ts';
import { withOpenApi } from './http/routes/openapi.ts';
import { runAssetRoutes } from './http/routes/run-assets.ts';
import { runRoutes } from './http/routes/runs.ts';
import { workspaceRoutes } from './http/routes/workspaces.ts';
import { createServer, type Server } from './http/server.ts';
import { findHostScript } from './kernel/host-script.ts';
import { limitBehindError, shownLimits } from './kernel/limits.ts';
import { LocalModelProcess } from './kernel/local-model.ts';
import { SyntaxJudge } from './kernel/syntax-judge.ts';
import { CodeCalls } from './notebook/code-calls.ts';
import { Executions } from './notebook/executions.ts';
import { FrontEndFiles } from './notebook/front-end-files.ts';
import { IdleSessions } from './notebook/idle-sessions.ts';
import { LiveNotebooks } from './notebook/live-notebooks.ts';
import { NotebookFiles } from './notebook/notebook-files.ts';
import { SessionActors } from './notebook/notebook-session-actors.ts';
import { NotebookSessions } from './notebook/notebook-sessions.ts';
import { NotebooksForAgents } from './notebook/notebooks-for-agents.ts';
import { SavedNotebooks } from './notebook/saved-notebooks.ts';
import { SessionWork } from './notebook/work/session-work.ts';
import { RunRepository } from './runs/run-repository.ts';
import { Environments } from './sessions/environments.ts';

export interface AppOptions {
  readonly config: Config;
  readonly log: Log;
  /** Taken over: closed with the app, and when opening it fails. */
  readonly foundation: Foundation;
  /** The process has to end: memory is ahead of the disk. */
  readonly onFatal: (error: Error) => void;
}

export interface App extends AsyncDisposable {
  readonly server: Server;
  readonly url: string;
  readonly bootstrapped: Bootstrapped;
  /** Resolves when kernels can be started; rejects when this Python cannot run them. */
  readonly kernelsReady: Promise<{ readonly confinement: string }>;
}

/** How long a stream or a code call may outlive its token when that expires; a revoked one ends it at once. */
const EXPIRY_CHECK_MS = 1000;
/** A token is an event that takes ten times its bytes, and who comes back late is told the answer so far anyway. */
const CONVERSATION_RESUME_SHARE = 1 / 32;
const STOPPING: Failure = {
  code: 'server_stopped',
  message: 'The server was stopped while this was running.',
};

/** Opens everything and listens. Disposing drains: running runs fail with `server_stopped`, sessions stay open. */
export async function createApp(options: AppOptions): Promise<App> {
  const opened = new Closing();
  try {
    return await open(options, opened);
  } catch (error) {
    await opened[Symbol.asyncDispose]();
    await options.foundation[Symbol.asyncDispose]();
    throw error;
  }
}

async function open({ config, log, foundation, onFatal }: AppOptions, opened: Closing): Promise<App> {
  let port: number | undefined;
  const { directory, host } = foundation;
  opened.use(directory);
  const store = opened.use(await openStore(directory.storePath, onFatal));
  const identity = new Identity(store);
  const bootstrapped = await bootstrap({
    identity,
    dataDir: directory.root,
    token: config.bootstrapToken,
    workspaceId: config.bootstrapWorkspace,
  });
  const callers = new Callers(identity);
  const members = new Members(identity);
  const actors = new ActorRuntime(store, log);
  const heartbeats = opened.use(new Heartbeats(config.heartbeatS * 1000));
  opened.use(host);
  // Behind the server, before the kernels: nothing commands an actor any more, and none outlives what it would write to.
  opened.use({ [Symbol.dispose]: () => actors.stopAll() });
  const runs = new RunRepository(store, actors, config.workspaceMaxRuns);
  const environments = new Environments(actors);
  const syntax = opened.use(new SyntaxJudge(host));
  const notebooks: SavedNotebooks = new SavedNotebooks({
    store,
    refuseWhileOpen: (workspaceId, id) => sessions.refuseWhileOpen(workspaceId, id),
    allParse: (codes) => syntax.allParse(codes),
  });
  const notebookFiles = new NotebookFiles(store, notebooks, {
    isUp: () => host.state === 'up',
    convert: (request) => host.convert(request),
  });
  const frontEnd = new FrontEndFiles(() => host.marimo);
  const budget = new StreamBudget(config.streamMemoryMb * 1024 * 1024);
  const makeStream = (sessionId: SessionId, resumeShare?: number) =>
    new SessionStream({
      sessionId,
      limitBytes: config.subscriberBufferBytes,
      resumeShare,
      heartbeats,
      budget,
    });
  const liveNotebooks = new LiveNotebooks({ store, notebooks, makeStream });
  const audit = new AuditTrail(store);
  const queryAudit = opened.use(new QueryAudit(audit));
  const { datasources, grants, keys, queries, forAgents } = opened.use(
    await openDatasources({
      store,
      audit,
      queryAudit,
      keyringFile: config.keyringFile,
      listenHost: config.host,
      ownPorts: () => [port, config.http10Port].filter((one) => one !== undefined),
      egressAllow: config.egressAllow,
      workspaceFiles: (workspaceId) => directory.workspaceFiles(workspaceId),
      startEngine: (launch) => host.startEngine(launch),
    }),
  );
  const sessionActors = new SessionActors({
    runtime: actors,
    environments: environments.actors,
    runs,
    liveNotebooks,
    kernels: host,
    workspaceFiles: (workspaceId) => directory.workspaceFiles(workspaceId),
    log,
    onClosing: (workspaceId, sessionId) => agents.sessions.closeBound(workspaceId, sessionId),
    openRpcHandler: ({ workspaceId, openedBy }, live) =>
      new KernelQueryHandler({
        queries,
        origin: { by: 'notebook', sessionId: live.stream.sessionId, tokenId: null },
        slugs: () => live.document.datasourceSlugs,
        reader: () =>
          openedBy?.readsDatasources === true ? members.reader(workspaceId, openedBy.userId) : undefined,
      }),
  });
  const sessions: NotebookSessions = new NotebookSessions({
    actors: sessionActors.actors,
    plane: sessionActors.plane,
    environments: environments.actors,
    notebooks,
    liveNotebooks,
    kernelFacts: () => ({
      confinement: host.confinement?.split(':', 1)[0] ?? null,
      network: config.kernelNetwork,
      ...shownLimits(host.limits),
    }),
    maxSessions: config.maxSessions,
    workspaceMaxSessions: config.workspaceMaxSessions,
  });
  opened.use(
    new IdleSessions({ actors: sessionActors.actors, liveNotebooks, timeoutMs: config.idleTimeoutS * 1000 }),
  );
  const work = new SessionWork(sessionActors.actors, liveNotebooks);
  const executions = new Executions({
    store,
    sessions,
    work,
    liveNotebooks,
    runs,
    hint: (type, text) => limitBehindError(type, text, host.limits),
  });
  const codeCalls = new CodeCalls({ store, sessions, work, liveNotebooks });
  const localModel =
    config.localModel === undefined
      ? undefined
      : opened.use(
          new LocalModelProcess({
            host,
            path: config.localModel,
            script: findHostScript('local_model.py'),
            contextTokens: config.modelContextTokens === 0 ? 4096 : config.modelContextTokens,
            memoryBytes: config.localModelMemoryMb === 0 ? null : config.localModelMemoryMb * 2 ** 20,
            log,
          }),
        );
  const agents = openAgents({
    store,
    runtime: actors,
    environments: environments.actors,
    runs,
    settings: config,
    log,
    makeStream: (sessionId) => makeStream(sessionId, CONVERSATION_RESUME_SHARE),
    notebooks: new NotebooksForAgents({
      store,
      sessions,
      actors: sessionActors.actors,
      work,
      liveNotebooks,
      codeCalls,
    }),
    datasources: forAgents,
    vault: new SecretStore(store, () => keys.ring),
    localModel,
  });
  let draining = false;
  const connections = new ConnectionLimit(config.maxConnections);
  // Behind the server: what it still answers goes out before these connections end.
  const relay =
    config.http10Port === undefined
      ? undefined
      : opened.use(
          await openHttp10Relay({
            host: config.host,
            port: config.http10Port,
            connections,
            target: () => (port === undefined ? undefined : { host: config.host, port }),
          }),
        );
  const server: Server = opened.use(
    await createServer({
      listen: { host: config.host, port: config.port },
      log,
      auth: callers,
      durable: () => store.durable(),
      observe: (read) => store.observe(read),
      idempotency: opened.use(new ReceiptBook(store)),
      draining: () => draining,
      streamsPerWorkspace: config.workspaceMaxSubscribers,
      connections,
      heartbeatMs: config.heartbeatS * 1000,
      routes: withOpenApi(
        withAudit(
          [
            ...healthRoutes(() => {
              if (draining) return { ready: false, reason: 'The server is stopping.' };
              if (host.state !== 'up') return { ready: false, reason: `The kernel host is ${host.state}.` };
              return { ready: true };
            }),
            ...notebookRoutes(notebooks),
            ...notebookFileRoutes({ files: notebookFiles, frontEnd, publicUrl: config.publicUrl }),
            ...frontEndRoutes(frontEnd),
            ...executionEnvironmentRoutes(environments),
            ...notebookSessionRoutes(sessions),
            ...executionRoutes(executions, sessions, runs),
            ...codeRoutes(codeCalls),
            ...agentSessionRoutes(agents.sessions, agents.prompts),
            ...agentSessionGrantRoutes(agents.access),
            ...modelRoutes({ models: agents.models, keys: agents.keys, test: agents.testModel }),
            ...runAssetRoutes(runs, agents.guardRun),
            ...runRoutes(
              runs,
              (kind, workspaceId, sessionId, runId) =>
                (kind === 'agent' ? agents.prompts : executions).cancel(workspaceId, sessionId, runId),
              agents.guardRun,
            ),
            ...actorRoutes(actors),
            ...datasourceRoutes(datasources),
            ...datasourceConnectionRoutes(datasources, connectionSchemaDocument),
            ...datasourceGrantRoutes(grants),
            ...auditRoutes(audit),
            ...keyRoutes(keys, (principal) => callers.isBound(principal)),
            ...workspaceRoutes(new Workspaces(identity)),
            ...memberRoutes(members),
            ...accessTokenRoutes(new AccessTokens(identity)),
          ],
          (actor, changes) => audit.noteAll(actor, changes),
        ),
        { version: VERSION, requirements: (action) => callers.requirements(action) },
      ),
    }),
  );
  port = server.port;
  const endWhatIsRevoked = () => {
    const isGood = callers.judgeAnew();
    server.endStreams((caller) => !isGood(caller));
    server.endPending((caller, action) => callers.refusalNow(caller, action));
  };
  identity.onChange(endWhatIsRevoked);
  const expiries = setInterval(endWhatIsRevoked, EXPIRY_CHECK_MS).unref();
  opened.use({ [Symbol.dispose]: () => clearInterval(expiries) });
  return {
    server,
    url: `http://${server.host.includes(':') ? `[${server.host}]` : server.host}:${server.port}`,
    bootstrapped,
    kernelsReady: foundation.kernelsReady,
    async [Symbol.asyncDispose]() {
      draining = true;
      relay?.stopListening();
      server.stopListening();
      const planes = [agents.plane, sessionActors.plane];
      for (const plane of planes) plane.suspendAll(STOPPING);
      await store.durable(); // so that subscribers hear how their runs ended before they are sent away
      for (const plane of planes) plane.resyncAll('server_stopping');
      await opened[Symbol.asyncDispose]();
    },
  };
}
