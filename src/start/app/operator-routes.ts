import { PageFiles } from '#src/http/page-files.ts';
import type { Route } from '#src/http/route.ts';
import { apiPageRoutes } from '#src/http/routes/api-page.ts';
import type { BrowserRoutesContext } from '#src/http/routes/browser-routes-context.ts';
import { commandLineSignInRoutes } from '#src/http/routes/command-line-sign-in.ts';
import { consoleRoutes } from '#src/http/routes/console.ts';
import { healthRoutes } from '#src/http/routes/health.ts';
import { nodeRoutes } from '#src/http/routes/nodes.ts';
import { retentionRoutes } from '#src/http/routes/retention.ts';
import { serverRoutes } from '#src/http/routes/server.ts';
import { signInRoutes } from '#src/http/routes/sign-in.ts';
import type { Opened } from './opened.ts';

/** Returns the routes about the server itself, with the pages from which people sign in. */
export function operatorRoutes(
  { planes, operation, upkeep }: Opened,
  browsers: BrowserRoutesContext,
): readonly Route[] {
  const { identity, phase } = planes;
  return [
    ...healthRoutes(operation.readiness, () => phase.isLeaving),
    ...serverRoutes(operation.observation),
    ...nodeRoutes(operation.control),
    ...retentionRoutes(upkeep.retention),
    ...consoleRoutes(browsers.files),
    ...signInRoutes(browsers, identity.signIns, planes.provider),
    ...commandLineSignInRoutes(browsers, identity.commandLines),
    ...apiPageRoutes(new PageFiles('docs')),
  ];
}
