import type { RunWaiting } from '#src/http/handlers/run-waiting.ts';
import { mediaTypeOf } from '#src/http/reply/content-headers.ts';
import type { Route } from '#src/http/route.ts';
import type { BrowserRoutesContext } from '#src/http/routes/browser-routes-context.ts';
import {
  executionEnvironmentRoutes,
  type ShownEnvironment,
} from '#src/http/routes/execution-environments.ts';
import { fileRoutes } from '#src/http/routes/files.ts';
import { frontEndRoutes } from '#src/http/routes/front-end.ts';
import { hookInRoutes, hookRoutes } from '#src/http/routes/hooks.ts';
import { jobRoutes } from '#src/http/routes/jobs.ts';
import { liveNotebookRoutes } from '#src/http/routes/live-notebooks.ts';
import { notebookPageRoutes } from '#src/http/routes/notebook-pages.ts';
import { notebookPanelRoutes } from '#src/http/routes/notebook-panels.ts';
import { codeRoutes, executionRoutes, notebookSessionRoutes } from '#src/http/routes/notebook-sessions.ts';
import {
  notebookFileRoutes,
  notebookRoutes,
  notebookSecretRoutes,
  notebookVersionRoutes,
} from '#src/http/routes/notebooks.ts';
import { packageRoutes } from '#src/http/routes/packages.ts';
import { NotebookPanels } from '#src/notebook/pages/notebook-panels.ts';
import { maxElementFileBytes } from '#src/workspace/files/element-files.ts';
import type { Planes } from './open-planes.ts';

const MIB = 1024 * 1024;

/** Returns the routes of notebooks, of the files and packages that they use, of their sessions, and of jobs and hooks. */
export function notebookPlaneRoutes(
  { config, audit, runs, environments, identity, notebooks, agents, pageTokens, ...planes }: Planes,
  browsers: BrowserRoutesContext,
  waiting: RunWaiting,
): readonly Route[] {
  const { files, frontEnd, pages, sessions, executions, urlOf } = notebooks;
  const maxFileBytes = config.maxFileMb * MIB;
  const packages = planes.packages.workspaces;
  const shownEnvironment: ShownEnvironment = (principal, environment) => ({
    ...environment,
    agentSessionIds: environment.agentSessionIds.filter((id) => agents.mayKnow(principal, id)),
  });
  return [
    ...notebookRoutes(notebooks.notebooks, notebooks.deletion, urlOf),
    ...notebookVersionRoutes(notebooks.notebooks, urlOf),
    ...notebookSecretRoutes(notebooks.secrets),
    ...notebookFileRoutes(browsers, { files, frontEnd, urlOf }),
    ...fileRoutes(planes.files, maxFileBytes),
    ...packageRoutes(packages, audit),
    ...frontEndRoutes(frontEnd),
    ...executionEnvironmentRoutes(environments, shownEnvironment),
    ...notebookSessionRoutes({
      sessions,
      list: notebooks.sessionList,
      interruptions: notebooks.interruptions,
      tickets: identity.tickets,
      admit: (workspaceId) => planes.files.quota.admitSession(workspaceId),
    }),
    ...notebookPageRoutes(browsers, { pages, sessions, credentials: pageTokens, frontEnd }),
    ...notebookPanelRoutes(
      new NotebookPanels({
        sessions,
        packages,
        files: { files: planes.files, typeOf: mediaTypeOf, maxFileBytes },
        elementFiles: notebooks.elementFiles,
        audit,
      }),
      { maxFileBytes, maxElementFileBytes: maxElementFileBytes(config) },
    ),
    ...liveNotebookRoutes(notebooks.edits, notebooks.elementCalls, sessions),
    ...executionRoutes(executions, sessions, runs, waiting),
    ...codeRoutes(notebooks.codeCalls, sessions),
    ...jobRoutes(planes.jobs.jobs),
    ...hookRoutes(planes.hooks.hooks),
    ...hookInRoutes(planes.hooks.hooksIn, planes.jobs.jobs, browsers.workers),
  ];
}
