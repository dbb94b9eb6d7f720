/** Opens the notebook plane: saved notebooks, their sessions and kernels, executions and code calls. */

import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { Config } from '#src/base/config/config.ts';
import type { SessionId, WorkspaceId } from '#src/base/ids.ts';
import type { Log } from '#src/base/log/log.ts';
import type { ConvertRequest } from '#src/confined/processes/children/convert.ts';
import { SyntaxJudge } from '#src/confined/processes/children/syntax-judge.ts';
import { limitBehindError, shownLimits } from '#src/confined/processes/limits.ts';
import { KernelQueryHandler } from '#src/datasource/query/kernel-query-handler.ts';
import type { Queries } from '#src/datasource/query/queries.ts';
import { notebookUrls } from '#src/http/routes/notebook-pages.ts';
import type { Kernels } from '#src/notebook/open/kernel-driver.ts';
import { LiveNotebooks } from '#src/notebook/open/live-notebooks.ts';
import { FrontEndFiles } from '#src/notebook/pages/front-end-files.ts';
import { type NotebookAgents, NotebookPages } from '#src/notebook/pages/notebook-pages.ts';
import type { PageStreamPorts } from '#src/notebook/pages/page-stream.ts';
import { CodeCalls } from '#src/notebook/requests/code-calls.ts';
import { ElementCalls } from '#src/notebook/requests/element-calls.ts';
import { Executions } from '#src/notebook/requests/executions.ts';
import { NOTEBOOK, NotebookDeletion } from '#src/notebook/requests/notebook-deletion.ts';
import { NotebookEdits } from '#src/notebook/requests/notebook-edits.ts';
import { NotebooksForAgents } from '#src/notebook/requests/notebooks-for-agents.ts';
import { SessionInterruptions } from '#src/notebook/requests/session-interruption.ts';
import { type CopySecrets, NotebookFiles, parserPlaces } from '#src/notebook/saved/notebook-files.ts';
import { NotebookSecrets, type SecretVault } from '#src/notebook/saved/notebook-secrets.ts';
import { SavedNotebooks } from '#src/notebook/saved/saved-notebooks.ts';
import { EndingSessions } from '#src/notebook/sessions/ending-sessions.ts';
import { IdleSessions } from '#src/notebook/sessions/idle-sessions.ts';
import { SessionActors } from '#src/notebook/sessions/notebook-session-actors.ts';
import { NotebookSessionList } from '#src/notebook/sessions/notebook-session-list.ts';
import { NotebookSessionPlaces } from '#src/notebook/sessions/notebook-session-places.ts';
import { NotebookSessions } from '#src/notebook/sessions/notebook-sessions.ts';
import { SessionEnds } from '#src/notebook/sessions/session-ends.ts';
import { SessionWork } from '#src/notebook/work/session-work.ts';
import type { Members } from '#src/people/auth/members.ts';
import type { WorkspaceLimits } from '#src/people/auth/workspace-limits.ts';
import type { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import type { SessionStream } from '#src/runtime/events/session-stream.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';
import type { RunDeletion } from '#src/runtime/runs/run-deletion.ts';
import type { RunRepository } from '#src/runtime/runs/run-repository.ts';
import type { EnvironmentActors } from '#src/runtime/sessions/environments.ts';
import { ElementFiles, maxElementFileBytes } from '#src/workspace/files/element-files.ts';
import type { WorkspaceFiles } from '#src/workspace/files/workspace-files.ts';
import { adviceOnMissingModule } from '#src/workspace/packages/missing-module.ts';
import type { WorkspacePackages } from '#src/workspace/packages/workspace-packages.ts';
import { memberRecords } from '#storage/records/identity.ts';
import type { Removals } from '#storage/removals.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import { beginElementFileSweep } from './element-file-sweep.ts';
import type { Prerequisites } from './prerequisites.ts';
import { workspaceFileReader } from './workspace-file-reader.ts';

export interface NotebookPlaneOptions {
  readonly config: Config;
  readonly cluster: Cluster;
  readonly log: Log;
  readonly store: Store;
  readonly runtime: ActorRuntime;
  readonly environments: EnvironmentActors;
  readonly runs: RunRepository;
  readonly runDeletion: RunDeletion;
  readonly removals: Removals;
  readonly prerequisites: Prerequisites;
  /** Starts kernels with the packages that notebooks ask for. */
  readonly kernels: Kernels;
  /** The packages that all notebooks of a workspace have. */
  readonly packages: WorkspacePackages;
  readonly files: WorkspaceFiles;
  readonly members: Members;
  readonly limits: WorkspaceLimits;
  /** Runs the statements of notebook code. */
  readonly queries: Queries;
  /** Keeps the secret variables of notebooks. */
  readonly vault: SecretVault;
  readonly makeStream: (sessionId: SessionId) => SessionStream;
  readonly pageStreams: PageStreamPorts;
  /** Closes an environment, in a shared turn. Throws the refusal if the environment is in use. */
  readonly closeEnvironment: (workspaceId: WorkspaceId, environmentId: string) => void;
  readonly agents: NotebookAgents;
  /** Called when a notebook session closes, to close the conversation bound to it. */
  readonly onSessionClosing: (workspaceId: WorkspaceId, sessionId: string, by: string | undefined) => void;
  /** Closes the conversation of a notebook and returns the function that deletes it, to be called in the same turn. */
  readonly prepareConversationDeletion: (
    workspaceId: WorkspaceId,
    notebookId: string,
  ) => (tx: Transaction) => void;
}

/** The kind of the removals of notebooks. */
export { NOTEBOOK };

export type NotebookPlane = ReturnType<typeof openNotebooks>;

/** Opens the plane, one inner room of `src/notebook` after the other; `stack` takes ownership of its resources. */
export function openNotebooks(options: NotebookPlaneOptions, stack: AsyncDisposableStack) {
  const saved = openSaved(options, stack, (...notebook) => opened.sessions.refuseWhileOpen(...notebook));
  const opened: OpenedSessions = openSessions(options, saved, stack);
  const requests = openRequests(options, saved, opened);
  const { actors, liveNotebooks, ...shown } = opened;
  return {
    ...saved,
    ...shown,
    ...requests,
    ...openPages(options, saved, opened, requests),
    workspacesWithKernels: () => actors.residents().map(({ workspaceId }) => workspaceId),
    /** Returns the sessions of a workspace whose kernels have a process. */
    sessionsWithKernels: (workspaceId: WorkspaceId) =>
      [...liveNotebooks.all()]
        .filter((live) => live.workspaceId === workspaceId && live.kernel?.pid != null)
        .map(({ sessionId }) => sessionId),
    /** Yields the kernels that have a process. */
    *kernels() {
      for (const { workspaceId, sessionId, kernel } of liveNotebooks.all()) {
        const pid = kernel?.pid ?? null;
        if (pid !== null) yield { workspaceId, sessionId, pid, node: kernel?.node ?? null };
      }
    },
  };
}

type Saved = ReturnType<typeof openSaved>;
type OpenedSessions = ReturnType<typeof openSessions>;
type Requests = ReturnType<typeof openRequests>;

/** Opens the saved notebooks, their secrets and their files. `refuseWhileOpen` throws while a session is open on a notebook. */
function openSaved(
  { config, store, vault, prerequisites: { directory, host } }: NotebookPlaneOptions,
  stack: AsyncDisposableStack,
  refuseWhileOpen: (workspaceId: WorkspaceId, notebookId: string) => void,
) {
  const parsers = parserPlaces();
  const syntax = stack.use(
    new SyntaxJudge(host, (codes, workspaceId) =>
      parsers.pass(workspaceId, () => host.checkSyntax(codes, directory.workspaceFilesPath(workspaceId))),
    ),
  );
  const notebooks = new SavedNotebooks({
    store,
    refuseWhileOpen,
    allParse: (codes, workspaceId) => syntax.allParse(codes, workspaceId),
  });
  const secrets = new NotebookSecrets({ store, vault, notebooks });
  const converter = {
    isUp: () => host.state === 'up',
    convert: (request: ConvertRequest, workspaceId: WorkspaceId) =>
      host.convert(request, directory.workspaceFilesPath(workspaceId)),
  };
  const copySecrets: CopySecrets = (...copy) => secrets.copy(...copy);
  const files = new NotebookFiles(
    store,
    notebooks,
    copySecrets,
    converter,
    parsers,
    workspaceFileReader(directory),
  );
  return { notebooks, secrets, files, urlOf: notebookUrls(config.publicUrl) };
}

/** Opens the notebooks in use, and their sessions. */
function openSessions(
  options: NotebookPlaneOptions,
  { notebooks, secrets, urlOf }: Saved,
  stack: AsyncDisposableStack,
) {
  const { config, cluster, log, store, runtime, environments, runs, members, limits, queries } = options;
  const { packages, makeStream, kernels, prerequisites } = options;
  const { directory, host } = prerequisites;
  const owns = cluster.owns.bind(cluster);
  const ends = new SessionEnds(store);
  const liveNotebooks = new LiveNotebooks({
    store,
    notebooks,
    makeStream,
    owns,
    onLoad: (session) => ends.loaded(session),
  });
  const places = new NotebookSessionPlaces(store);
  const elementFiles = new ElementFiles(options.files);
  const { actors, plane } = new SessionActors({
    store,
    places,
    ends,
    runtime,
    environments,
    runs,
    liveNotebooks,
    kernels,
    packages,
    secrets,
    workspaceFiles: (workspaceId) => directory.workspaceFiles(workspaceId),
    elementFiles,
    log,
    onClosing: options.onSessionClosing,
    openRpcHandler: ({ workspaceId, openedBy }, live, memoryShare) =>
      new KernelQueryHandler({
        queries,
        memoryShare,
        origin: { by: 'notebook', sessionId: live.stream.sessionId, tokenId: null },
        slugs: () => live.document.datasourceSlugs,
        trace: () => live.work.trace,
        reader() {
          store.refreshShared();
          return openedBy?.readsDatasources === true
            ? members.reader(workspaceId, openedBy.userId)
            : undefined;
        },
      }),
  });
  const sessions = new NotebookSessions({
    actors,
    plane,
    places,
    ends,
    environments,
    notebooks,
    liveNotebooks,
    urlOf,
    kernelFacts: () => ({
      confinement: host.confinement?.split(':', 1)[0] ?? null,
      network: config.kernelNetwork,
      ...shownLimits(host.limits),
    }),
    maxSessions: config.maxSessions,
    workspaceMaxSessions: (workspaceId) => limits.of(workspaceId, 'sessions'),
    userMaxSessions: (workspaceId) => limits.of(workspaceId, 'sessionsPerUser'),
  });
  stack.use(new IdleSessions({ actors, liveNotebooks, ends, timeoutMs: config.idleTimeoutS * 1000 }));
  const { closeEnvironment } = options;
  if (!store.isReadOnly)
    stack.use(new EndingSessions({ store, actors, liveNotebooks, ends, owns, closeEnvironment, log }));
  const hasKernel = (workspaceId: WorkspaceId, id: string) => {
    const peek = actors.peek({ workspaceId, id });
    return peek?.live === true && peek.snapshot.hasTag('resident');
  };
  beginElementFileSweep({ store, cluster, files: elementFiles, hasKernel }, stack);
  const sessionList = new NotebookSessionList({ store, actors, notebooks, urlOf });
  return { actors, plane, liveNotebooks, sessions, sessionList, elementFiles };
}

/** Opens what requests of clients and agents do with sessions. */
function openRequests(
  options: NotebookPlaneOptions,
  { notebooks, secrets }: Saved,
  { sessions, actors, liveNotebooks }: OpenedSessions,
) {
  const { config, log, store, runs, runDeletion, removals, packages, prerequisites } = options;
  const { host } = prerequisites;
  const work = new SessionWork(actors, liveNotebooks);
  const codeCalls = new CodeCalls({ store, sessions, work, liveNotebooks });
  return {
    work,
    codeCalls,
    deletion: new NotebookDeletion({
      store,
      removals,
      notebooks,
      sessions,
      secrets,
      runDeletion,
      prepareConversation: options.prepareConversationDeletion,
    }),
    edits: new NotebookEdits(sessions, liveNotebooks),
    elementCalls: new ElementCalls({ store, sessions, actors, work, liveNotebooks }),
    interruptions: new SessionInterruptions({ actors, sessions, runs, work }),
    executions: new Executions({
      log,
      store,
      sessions,
      work,
      liveNotebooks,
      runs,
      hint: (workspaceId, type, text) =>
        limitBehindError(type, text, host.limits) ||
        adviceOnMissingModule(type, text, {
          mayInstall: config.packages,
          has: (name) => packages.has(workspaceId, name),
        }),
    }),
    /** The notebooks as the tools of agents use them. */
    forAgents: new NotebooksForAgents({ store, sessions, actors, work, liveNotebooks, codeCalls }),
  };
}

/** Opens the pages of notebooks in browsers. */
function openPages(
  { config, log, store, packages, agents, pageStreams, prerequisites: { host } }: NotebookPlaneOptions,
  { secrets, files }: Saved,
  { sessions, actors, liveNotebooks, elementFiles }: OpenedSessions,
  { work, executions, interruptions }: Requests,
) {
  const pages = new NotebookPages({
    store,
    sessions,
    actors,
    liveNotebooks,
    work,
    executions,
    interruptions,
    secrets,
    files,
    nameOf: (workspaceId, userId) => store.get(memberRecords, workspaceId, userId)?.name ?? undefined,
    agents,
    streams: pageStreams,
    installed: () => host.marimo,
    hosts: config.pageHosts,
    idleTimeoutS: config.idleTimeoutS,
    packages,
    elementFiles,
    maxElementFileBytes: maxElementFileBytes(config),
    log,
  });
  return { pages, frontEnd: new FrontEndFiles(() => host.marimo) };
}
