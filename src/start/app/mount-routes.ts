/** Lists every route of the API, connected to the planes that handle it. */

import type { openAgents } from '#src/agent/open-agents.ts';
import type { Config } from '#src/base/config/config.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { VERSION } from '#src/base/install/version.ts';
import type { Log } from '#src/base/log/log.ts';
import type { Readiness } from '#src/contract/wire/health.ts';
import {
  connectionComponent,
  connectionSchemaDocument,
} from '#src/datasource/connectors/connection-schema.ts';
import type { DatasourcePlane } from '#src/datasource/open-datasources.ts';
import { withAudit } from '#src/http/handlers/audited-routes.ts';
import { RunCancellation } from '#src/http/handlers/run-cancellation.ts';
import { RunWaiting } from '#src/http/handlers/run-waiting.ts';
import type { InnerRequests } from '#src/http/inner/inner-requests.ts';
import { PageFiles } from '#src/http/page-files.ts';
import { mediaTypeOf } from '#src/http/reply/content-headers.ts';
import type { Route } from '#src/http/route.ts';
import { accessTokenRoutes } from '#src/http/routes/access-tokens.ts';
import { type ActorInspection, actorRoutes } from '#src/http/routes/actors.ts';
import { agentSessionGrantRoutes, agentSessionRoutes } from '#src/http/routes/agent-sessions.ts';
import { apiPageRoutes } from '#src/http/routes/api-page.ts';
import { auditRoutes } from '#src/http/routes/audit.ts';
import { commandLineSignInRoutes } from '#src/http/routes/command-line-sign-in.ts';
import { consoleRoutes } from '#src/http/routes/console.ts';
import {
  datasourceConnectionRoutes,
  datasourceGrantRoutes,
  datasourceRoutes,
} from '#src/http/routes/datasources.ts';
import {
  executionEnvironmentRoutes,
  type ShownEnvironment,
} from '#src/http/routes/execution-environments.ts';
import { fileRoutes } from '#src/http/routes/files.ts';
import { frontEndRoutes } from '#src/http/routes/front-end.ts';
import { healthRoutes } from '#src/http/routes/health.ts';
import { keyRoutes } from '#src/http/routes/keys.ts';
import { landingPageRoutes } from '#src/http/routes/landing-page.ts';
import { liveNotebookRoutes } from '#src/http/routes/live-notebooks.ts';
import { mcpRoutes } from '#src/http/routes/mcp.ts';
import { meRoutes } from '#src/http/routes/me.ts';
import { memberRoutes } from '#src/http/routes/members.ts';
import { modelRoutes } from '#src/http/routes/models.ts';
import { type NodesControl, nodeRoutes } from '#src/http/routes/nodes.ts';
import { notebookPageRoutes } from '#src/http/routes/notebook-pages.ts';
import { notebookPanelRoutes } from '#src/http/routes/notebook-panels.ts';
import { codeRoutes, executionRoutes, notebookSessionRoutes } from '#src/http/routes/notebook-sessions.ts';
import {
  notebookFileRoutes,
  notebookRoutes,
  notebookSecretRoutes,
  notebookVersionRoutes,
} from '#src/http/routes/notebooks.ts';
import { withOpenApi } from '#src/http/routes/openapi.ts';
import { packageRoutes } from '#src/http/routes/packages.ts';
import { type RetentionControl, retentionRoutes } from '#src/http/routes/retention.ts';
import { runRoutes } from '#src/http/routes/runs.ts';
import { type ServerObservation, serverRoutes } from '#src/http/routes/server.ts';
import { signInRoutes } from '#src/http/routes/sign-in.ts';
import { usageRoutes } from '#src/http/routes/usage.ts';
import { workspaceLimitRoutes, workspaceRoutes } from '#src/http/routes/workspaces.ts';
import type { McpEndpoint } from '#src/mcp/endpoint.ts';
import { NotebookPanels } from '#src/notebook/pages/notebook-panels.ts';
import type { StoredUsageCounter } from '#src/operate/operators/stored-usage.ts';
import type { AuditTrail } from '#src/people/audit/audit-trail.ts';
import type { IdentityPlane } from '#src/people/auth/open-identity.ts';
import type { PageTokens } from '#src/people/auth/page-tokens.ts';
import type { ProviderSignIn } from '#src/people/auth/provider/provider-sign-in.ts';
import type { WorkspaceDeletion } from '#src/people/auth/workspace-deletion.ts';
import type { ActorEvents } from '#src/runtime/actors/actor-events.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';
import type { RunDeletion } from '#src/runtime/runs/run-deletion.ts';
import type { RunRepository } from '#src/runtime/runs/run-repository.ts';
import type { Environments } from '#src/runtime/sessions/environments.ts';
import { maxElementFileBytes } from '#src/workspace/files/element-files.ts';
import type { WorkspaceFiles } from '#src/workspace/files/workspace-files.ts';
import type { WorkspacePackages } from '#src/workspace/packages/workspace-packages.ts';
import type { Store } from '#storage/store.ts';
import type { NotebookPlane } from './open-notebooks.ts';

const MIB = 1024 * 1024;

export interface Planes {
  readonly store: Store;
  readonly cluster: Cluster;
  readonly config: Pick<Config, 'maxFileMb' | 'publicUrl'>;
  readonly actors: ActorInspection;
  readonly actorEvents: ActorEvents;
  readonly audit: AuditTrail;
  readonly runs: RunRepository;
  readonly runDeletion: RunDeletion;
  readonly environments: Environments;
  readonly identity: IdentityPlane;
  /** Signing in with the identity provider; undefined when the settings name none. */
  readonly provider: ProviderSignIn | undefined;
  readonly log: Log;
  readonly workspaceDeletion: WorkspaceDeletion;
  readonly notebooks: NotebookPlane;
  readonly pageTokens: PageTokens;
  readonly agents: ReturnType<typeof openAgents>;
  readonly datasources: DatasourcePlane;
  readonly files: WorkspaceFiles;
  readonly packages: WorkspacePackages;
  readonly storedUsage: StoredUsageCounter;
  readonly readiness: () => Readiness;
  /** Whether the server drains before its end. */
  readonly isLeaving: () => boolean;
  readonly observation: ServerObservation;
  readonly nodes: NodesControl;
  readonly retention: RetentionControl;
  readonly mcp: McpEndpoint;
  readonly inner: InnerRequests;
}

/** Returns the routes in the order in which the OpenAPI document lists them. */
export function mountRoutes(planes: Planes): readonly Route[] {
  const { config, actors, audit, runs, identity, notebooks, agents, datasources } = planes;
  const { authenticator } = identity;
  const { files, frontEnd, sessions, executions } = notebooks;
  const waiting = new RunWaiting(runs, agents.guardRun);
  const cancellation = new RunCancellation({
    runs,
    guard: agents.guardRun,
    stop: (kind, workspaceId, sessionId, runId) =>
      (kind === 'agent' ? agents.prompts : executions).cancel(workspaceId, sessionId, runId),
    store: planes.store,
    cluster: planes.cluster,
  });
  const shownEnvironment: ShownEnvironment = (principal, environment) => ({
    ...environment,
    agentSessionIds: environment.agentSessionIds.filter((id) => agents.mayKnow(principal, id)),
  });
  const pageFiles = new PageFiles('console');
  const routes = [
    ...healthRoutes(planes.readiness, planes.isLeaving),
    ...serverRoutes(planes.observation),
    ...nodeRoutes(planes.nodes),
    ...retentionRoutes(planes.retention),
    ...consoleRoutes(pageFiles),
    ...signInRoutes({
      files: pageFiles,
      sessions: identity.sessions,
      audit,
      publicUrl: config.publicUrl,
      provider: planes.provider,
      log: planes.log,
      workers: planes.cluster.size,
    }),
    ...commandLineSignInRoutes({
      commandLines: identity.commandLines,
      audit,
      publicUrl: config.publicUrl,
      workers: planes.cluster.size,
    }),
    ...apiPageRoutes(new PageFiles('docs')),
    ...notebookRoutes(notebooks.notebooks, notebooks.deletion, notebooks.urlOf),
    ...notebookVersionRoutes(notebooks.notebooks, notebooks.urlOf),
    ...notebookSecretRoutes(notebooks.secrets),
    ...notebookFileRoutes({ files, frontEnd, publicUrl: config.publicUrl, urlOf: notebooks.urlOf }),
    ...fileRoutes(planes.files, config.maxFileMb * MIB),
    ...packageRoutes(planes.packages, audit),
    ...frontEndRoutes(frontEnd),
    ...executionEnvironmentRoutes(planes.environments, shownEnvironment),
    ...notebookSessionRoutes({
      sessions,
      list: notebooks.sessionList,
      interruptions: notebooks.interruptions,
      tickets: identity.tickets,
      admit: (workspaceId) => planes.files.quota.admitSession(workspaceId),
    }),
    ...notebookPageRoutes({
      files: pageFiles,
      pages: notebooks.pages,
      sessions,
      credentials: planes.pageTokens,
      frontEnd,
      publicUrl: config.publicUrl,
      audit,
    }),
    ...notebookPanelRoutes(
      new NotebookPanels({
        sessions,
        packages: planes.packages,
        files: { files: planes.files, typeOf: mediaTypeOf, maxFileBytes: config.maxFileMb * MIB },
        elementFiles: notebooks.elementFiles,
        audit,
      }),
      { maxFileBytes: config.maxFileMb * MIB, maxElementFileBytes: maxElementFileBytes(config) },
    ),
    ...liveNotebookRoutes(notebooks.edits, notebooks.elementCalls, sessions),
    ...executionRoutes(executions, sessions, runs, waiting),
    ...codeRoutes(notebooks.codeCalls, notebooks.sessions),
    ...agentSessionRoutes({
      sessions: agents.sessions,
      prompts: agents.prompts,
      deletion: agents.deletion,
      tickets: identity.tickets,
      waiting,
    }),
    ...agentSessionGrantRoutes(agents.access),
    ...modelRoutes({ models: agents.models, keys: agents.keys, test: agents.testModel }),
    ...runRoutes({
      runs,
      cancellation,
      deletion: planes.runDeletion,
      guard: agents.guardRun,
      waiting,
      mayReadRun: (principal, run) => agents.mayReadRun(principal, run),
    }),
    ...actorRoutes(actors, planes.actorEvents, runs.reader),
    ...datasourceRoutes(datasources.datasources),
    ...datasourceConnectionRoutes(datasources.datasources, connectionSchemaDocument),
    ...datasourceGrantRoutes(datasources.grants),
    ...auditRoutes(audit),
    ...usageRoutes({
      async disk({ workspaceId }) {
        const { quota } = planes.files;
        const [{ bytes, entries, isComplete, countedAtMs }, stored] = await Promise.all([
          quota.usage(workspaceId),
          planes.storedUsage.of(workspaceId),
        ]);
        const max = quota.max(workspaceId);
        const [maxBytes, maxEntries] = [max.bytes || null, max.entries || null];
        const countedAt = new Date(countedAtMs).toISOString();
        return { files: { bytes, entries, complete: isComplete, countedAt, maxBytes, maxEntries }, stored };
      },
      models: ({ workspaceId, userId, role }, query) =>
        agents.modelUse.page(workspaceId, query, role === 'owner' ? undefined : userId),
    }),
    ...keyRoutes(datasources.keys, (principal) => authenticator.isBound(principal)),
    ...meRoutes(identity.ownAccounts),
    ...workspaceRoutes(identity.workspaces, planes.workspaceDeletion),
    ...workspaceLimitRoutes(identity.limits, audit),
    ...memberRoutes(identity.members),
    ...accessTokenRoutes(identity.tokens),
    ...mcpRoutes(planes.mcp, planes.inner),
  ];
  const audited = withAudit(routes, audit);
  const landing = landingPageRoutes({
    version: VERSION,
    routes: audited,
    files: pageFiles,
    isSession: (secret) => isSession(authenticator, secret),
    publicUrl: config.publicUrl,
  });
  return withOpenApi([...landing, ...audited], {
    version: VERSION,
    schemas: { DatasourceConnection: connectionComponent },
    requirements: (action) => authenticator.requirements(action),
  });
}

/** Returns whether a secret belongs to a session in a browser. */
function isSession(authenticator: IdentityPlane['authenticator'], secret: string): boolean {
  try {
    authenticator.identifySession(secret);
    return true;
  } catch (error) {
    if (error instanceof AppError) return false;
    throw error;
  }
}
