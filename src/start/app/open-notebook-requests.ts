import { limitBehindError } from '#src/confined/processes/limits.ts';
import { FrontEndFiles } from '#src/notebook/pages/front-end-files.ts';
import { NotebookPages } from '#src/notebook/pages/notebook-pages.ts';
import { CodeCalls } from '#src/notebook/requests/code-calls.ts';
import { ElementCalls } from '#src/notebook/requests/element-calls.ts';
import { Executions } from '#src/notebook/requests/executions.ts';
import { NotebookCopies } from '#src/notebook/requests/notebook-copies.ts';
import { NotebookDeletion } from '#src/notebook/requests/notebook-deletion.ts';
import { NotebookEdits } from '#src/notebook/requests/notebook-edits.ts';
import { NotebooksForAgents } from '#src/notebook/requests/notebooks-for-agents.ts';
import type { NotebookRequestContext } from '#src/notebook/requests/request-context.ts';
import { SessionInterruptions } from '#src/notebook/requests/session-interruption.ts';
import type { NotebookFiles } from '#src/notebook/saved/notebook-files.ts';
import { adviceOnMissingModule } from '#src/workspace/packages/missing-module.ts';
import type { Ground } from './ground.ts';

/** Opens the operations of clients, agents and pages in browsers on sessions. */
export function openRequests(
  context: NotebookRequestContext,
  files: NotebookFiles,
  { config, streams, prerequisites: { host } }: Ground,
) {
  const codeCalls = new CodeCalls(context);
  const executions = new Executions(
    context,
    (workspaceId, type, text) =>
      limitBehindError(type, text, host.limits) ||
      adviceOnMissingModule(type, text, {
        mayInstall: config.packages,
        has: (name) => context.packages.has(workspaceId, name),
      }),
  );
  const interruptions = new SessionInterruptions(context);
  const deletion = new NotebookDeletion(context);
  const installed = () => host.marimo;
  return {
    codeCalls,
    executions,
    interruptions,
    deletion,
    copies: new NotebookCopies(context, deletion),
    edits: new NotebookEdits(context.sessions, context.liveNotebooks),
    elementCalls: new ElementCalls(context),
    /** The notebooks as the tools of agents use them. */
    forAgents: new NotebooksForAgents(context, codeCalls),
    pages: new NotebookPages(context, {
      executions,
      interruptions,
      files,
      streams: streams.pageStreams,
      installed,
    }),
    frontEnd: new FrontEndFiles(installed),
  };
}
