import { connectionSchemaDocument } from '#src/datasource/connectors/connection-schema.ts';
import type { Route } from '#src/http/route.ts';
import { accessTokenRoutes } from '#src/http/routes/access-tokens.ts';
import { auditRoutes } from '#src/http/routes/audit.ts';
import {
  datasourceConnectionRoutes,
  datasourceGrantRoutes,
  datasourceRoutes,
} from '#src/http/routes/datasources.ts';
import { keyRoutes } from '#src/http/routes/keys.ts';
import { mcpRoutes } from '#src/http/routes/mcp.ts';
import { meRoutes } from '#src/http/routes/me.ts';
import { memberRoutes } from '#src/http/routes/members.ts';
import { usageRoutes } from '#src/http/routes/usage.ts';
import { workspaceLimitRoutes, workspaceRoutes } from '#src/http/routes/workspaces.ts';
import { McpEndpoint } from '#src/mcp/endpoint.ts';
import { StoredUsageCounter } from '#src/operate/operators/stored-usage.ts';
import type { Opened } from './opened.ts';

/** Returns the routes of datasources, of workspaces with their members and use, and of MCP. */
export function workspacePlaneRoutes({ planes, upkeep, inner }: Opened): readonly Route[] {
  const { agents, audit, cluster, datasources, files, identity, log, store } = planes;
  const storedUsage = new StoredUsageCounter(store);
  return [
    ...datasourceRoutes(datasources.datasources),
    ...datasourceConnectionRoutes(datasources.datasources, connectionSchemaDocument),
    ...datasourceGrantRoutes(datasources.grants),
    ...auditRoutes(audit),
    ...usageRoutes(
      async ({ workspaceId }) => {
        const { quota } = files;
        const [{ bytes, entries, isComplete, countedAtMs }, stored] = await Promise.all([
          quota.usage(workspaceId),
          storedUsage.of(workspaceId),
        ]);
        const max = quota.max(workspaceId);
        const [maxBytes, maxEntries] = [max.bytes || null, max.entries || null];
        const countedAt = new Date(countedAtMs).toISOString();
        return { files: { bytes, entries, complete: isComplete, countedAt, maxBytes, maxEntries }, stored };
      },
      ({ workspaceId, userId, role }, query) =>
        agents.modelUse.page(workspaceId, query, role === 'owner' ? undefined : userId),
    ),
    ...keyRoutes(datasources.keys, (principal) => identity.authenticator.isBound(principal)),
    ...meRoutes(identity.ownAccounts),
    ...workspaceRoutes(identity.workspaces, upkeep.workspaceDeletion),
    ...workspaceLimitRoutes(identity.limits, audit),
    ...memberRoutes(identity.members),
    ...accessTokenRoutes(identity.tokens),
    ...mcpRoutes(new McpEndpoint(cluster, datasources.forAgents, log), inner),
  ];
}
