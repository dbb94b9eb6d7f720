/** Lists every route of the API, connected to the planes that handle it. */

import { AppError } from '#src/base/errors/errors.ts';
import { VERSION } from '#src/base/install/version.ts';
import { connectionComponent } from '#src/datasource/connectors/connection-schema.ts';
import { withAudit } from '#src/http/handlers/audited-routes.ts';
import { RunWaiting } from '#src/http/handlers/run-waiting.ts';
import { PageFiles } from '#src/http/page-files.ts';
import type { Route } from '#src/http/route.ts';
import { landingPageRoutes } from '#src/http/routes/landing-page.ts';
import { withOpenApi } from '#src/http/routes/openapi.ts';
import type { IdentityPlane } from '#src/people/auth/open-identity.ts';
import { agentRoutes } from './agent-routes.ts';
import { notebookPlaneRoutes } from './notebook-routes.ts';
import type { Opened } from './opened.ts';
import { operatorRoutes } from './operator-routes.ts';
import { workspacePlaneRoutes } from './workspace-routes.ts';

/** Returns the routes in the order in which the OpenAPI document lists them. */
export function mountRoutes(opened: Opened): readonly Route[] {
  const { planes } = opened;
  const { config, audit, cluster, log } = planes;
  const { authenticator } = planes.identity;
  const browsers = {
    files: new PageFiles('console'),
    audit,
    publicUrl: config.publicUrl,
    workers: cluster.size,
    log,
  };
  const waiting = new RunWaiting(planes.runs, planes.agents.guardRun);
  const routes = [
    ...operatorRoutes(opened, browsers),
    ...notebookPlaneRoutes(planes, browsers, waiting),
    ...agentRoutes(planes, waiting),
    ...workspacePlaneRoutes(opened),
  ];
  const audited = withAudit(routes, audit);
  const landing = landingPageRoutes(browsers, audited, (secret) => isSession(authenticator, secret));
  return withOpenApi([...landing, ...audited], {
    version: VERSION,
    schemas: { DatasourceConnection: connectionComponent },
    requirements: (action) => authenticator.requirements(action),
  });
}

/** Returns whether a secret belongs to a session in a browser. */
function isSession(authenticator: IdentityPlane['authenticator'], secret: string): boolean {
  try {
    authenticator.identifySignIn(secret);
    return true;
  } catch (error) {
    if (error instanceof AppError) return false;
    throw error;
  }
}
