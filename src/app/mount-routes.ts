/** Lists every route of the API, connected to the planes that handle it. */
import type { ActorRuntime } from '#src/actors/runtime.ts';
import type { openAgents } from '#src/agent/open-agents.ts';
import type { AuditTrail } from '#src/audit/audit-trail.ts';
import type { IdentityPlane } from '#src/auth/open-identity.ts';
import { VERSION } from '#src/core/version.ts';
import { connectionSchemaDocument } from '#src/datasource/connectors/connection-schema.ts';
import type { DatasourcePlane } from '#src/datasource/open-datasources.ts';
import type { Route } from '#src/http/route.ts';
import { accessTokenRoutes } from '#src/http/routes/access-tokens.ts';
import { actorRoutes } from '#src/http/routes/actors.ts';
import { agentSessionGrantRoutes } from '#src/http/routes/agent-session-grants.ts';
import { agentSessionRoutes } from '#src/http/routes/agent-sessions.ts';
import { auditRoutes } from '#src/http/routes/audit.ts';
import { withAudit } from '#src/http/routes/audited-routes.ts';
import { codeRoutes } from '#src/http/routes/code.ts';
import { datasourceConnectionRoutes } from '#src/http/routes/datasource-connections.ts';
import { datasourceGrantRoutes } from '#src/http/routes/datasource-grants.ts';
import { datasourceRoutes } from '#src/http/routes/datasources.ts';
import { executionEnvironmentRoutes } from '#src/http/routes/execution-environments.ts';
import { executionRoutes } from '#src/http/routes/executions.ts';
import { frontEndRoutes } from '#src/http/routes/front-end.ts';
import { healthRoutes } from '#src/http/routes/health.ts';
import { keyRoutes } from '#src/http/routes/keys.ts';
import { memberRoutes } from '#src/http/routes/members.ts';
import { modelRoutes } from '#src/http/routes/models.ts';
import { notebookFileRoutes } from '#src/http/routes/notebook-files.ts';
import { notebookSessionRoutes } from '#src/http/routes/notebook-sessions.ts';
import { notebookRoutes } from '#src/http/routes/notebooks.ts';
import { withOpenApi } from '#src/http/routes/openapi.ts';
import { runAssetRoutes } from '#src/http/routes/run-assets.ts';
import { runRoutes } from '#src/http/routes/runs.ts';
import { workspaceRoutes } from '#src/http/routes/workspaces.ts';
import type { RunRepository } from '#src/runs/run-repository.ts';
import type { Environments } from '#src/sessions/environments.ts';
import type { Readiness } from '#src/wire/operations.ts';
import type { NotebookPlane } from './open-notebooks.ts';

export interface Planes {
  readonly actors: ActorRuntime;
  readonly audit: AuditTrail;
  readonly runs: RunRepository;
  readonly environments: Environments;
  readonly identity: IdentityPlane;
  readonly notebooks: NotebookPlane;
  readonly agents: ReturnType<typeof openAgents>;
  readonly datasources: DatasourcePlane;
  readonly readiness: () => Readiness;
  /** The address at which browsers reach this server, when it is configured. */
  readonly publicUrl: string | undefined;
}

/** Returns the routes in the order in which the OpenAPI document lists them. */
export function mountRoutes(planes: Planes): readonly Route[] {
  const { actors, audit, runs, identity, notebooks, agents, datasources } = planes;
  const { authenticator } = identity;
  const { files, frontEnd, sessions, executions } = notebooks;
  const routes = [
    ...healthRoutes(planes.readiness),
    ...notebookRoutes(notebooks.notebooks),
    ...notebookFileRoutes({ files, frontEnd, publicUrl: planes.publicUrl }),
    ...frontEndRoutes(frontEnd),
    ...executionEnvironmentRoutes(planes.environments),
    ...notebookSessionRoutes(sessions),
    ...executionRoutes(executions, sessions, runs),
    ...codeRoutes(notebooks.codeCalls),
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
    ...datasourceRoutes(datasources.datasources),
    ...datasourceConnectionRoutes(datasources.datasources, connectionSchemaDocument),
    ...datasourceGrantRoutes(datasources.grants),
    ...auditRoutes(audit),
    ...keyRoutes(datasources.keys, (principal) => authenticator.isBound(principal)),
    ...workspaceRoutes(identity.workspaces),
    ...memberRoutes(identity.members),
    ...accessTokenRoutes(identity.tokens),
  ];
  const audited = withAudit(routes, (context, changes) => audit.noteAll(context, changes));
  return withOpenApi(audited, {
    version: VERSION,
    requirements: (action) => authenticator.requirements(action),
  });
}
