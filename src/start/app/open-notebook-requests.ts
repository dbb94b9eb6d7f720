import type { KernelHost } from '#src/confined/processes/host/kernel-host.ts';
import { FrontEndFiles } from '#src/notebook/pages/front-end-files.ts';
import { NotebookPages } from '#src/notebook/pages/notebook-pages.ts';
import type { PageStreams } from '#src/notebook/pages/page-stream.ts';
import { CodeCalls } from '#src/notebook/requests/code-calls.ts';
import { ElementCalls } from '#src/notebook/requests/element-calls.ts';
import { Executions, type HintOf } from '#src/notebook/requests/executions.ts';
import { NotebookDeletion } from '#src/notebook/requests/notebook-deletion.ts';
import { NotebookEdits } from '#src/notebook/requests/notebook-edits.ts';
import { NotebooksForAgents } from '#src/notebook/requests/notebooks-for-agents.ts';
import type { NotebookRequestContext } from '#src/notebook/requests/request-context.ts';
import { SessionInterruptions } from '#src/notebook/requests/session-interruption.ts';
import type { NotebookFiles } from '#src/notebook/saved/notebook-files.ts';

export interface NotebookRequestsOptions {
  readonly files: NotebookFiles;
  readonly streams: PageStreams;
  readonly host: KernelHost;
  /** Returns advice on an error of a run. */
  readonly hint: HintOf;
}

/** Opens what requests of clients, of agents and of pages in browsers do with sessions. */
export function openRequests(
  context: NotebookRequestContext,
  { files, streams, host, hint }: NotebookRequestsOptions,
) {
  const codeCalls = new CodeCalls(context);
  const executions = new Executions(context, hint);
  const interruptions = new SessionInterruptions(context);
  const installed = () => host.marimo;
  return {
    codeCalls,
    executions,
    interruptions,
    deletion: new NotebookDeletion(context),
    edits: new NotebookEdits(context.sessions, context.liveNotebooks),
    elementCalls: new ElementCalls(context),
    /** The notebooks as the tools of agents use them. */
    forAgents: new NotebooksForAgents(context, codeCalls),
    pages: new NotebookPages(context, { executions, interruptions, files, streams, installed }),
    frontEnd: new FrontEndFiles(installed),
  };
}
