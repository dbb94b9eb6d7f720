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

/** Opens the plane; `stack` takes ownership of its resources. */
export function openNotebooks(options: NotebookPlaneOptions, stack: AsyncDisposableStack) {
  const {
    config,
    cluster,
    log,
    store,
    runtime,
    environments,
    runs,
    members,
    limits,
    queries,
    makeStream,
    packages,
  } = options;
  const { directory, host } = options.prerequisites;
  const parsers = parserPlaces();
  const syntax = stack.use(
    new SyntaxJudge(host, (codes, workspaceId) =>
      parsers.pass(workspaceId, () => host.checkSyntax(codes, directory.workspaceFilesPath(workspaceId))),
    ),
  );
  const urlOf = notebookUrls(config.publicUrl);
  const notebooks: SavedNotebooks = new SavedNotebooks({
    store,
    refuseWhileOpen: (workspaceId, id) => sessions.refuseWhileOpen(workspaceId, id),
    allParse: (codes, workspaceId) => syntax.allParse(codes, workspaceId),
  });
  const secrets = new NotebookSecrets({ store, vault: options.vault, notebooks });
  const ends = new SessionEnds(store);
  const liveNotebooks = new LiveNotebooks({
    store,
    notebooks,
    makeStream,
    owns: (workspaceId, id) => cluster.owns(workspaceId, id),
    onLoad: (session) => ends.loaded(session),
  });
  const places = new NotebookSessionPlaces(store);
  const elementFiles = new ElementFiles(options.files);
  const sessionActors: SessionActors = new SessionActors({
    store,
    places,
    ends,
    runtime,
    environments,
    runs,
    liveNotebooks,
    kernels: options.kernels,
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
  const { actors, plane } = sessionActors;
  const sessions: NotebookSessions = new NotebookSessions({
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
  if (!store.isReadOnly)
    stack.use(
      new EndingSessions({
        store,
        actors,
        liveNotebooks,
        ends,
        owns: (workspaceId, id) => cluster.owns(workspaceId, id),
        closeEnvironment: options.closeEnvironment,
        log,
      }),
    );
  const hasKernel = (workspaceId: WorkspaceId, id: string) => {
    const peek = actors.peek({ workspaceId, id });
    return peek?.live === true && peek.snapshot.hasTag('resident');
  };
  beginElementFileSweep({ store, cluster, files: elementFiles, hasKernel }, stack);
  const work = new SessionWork(actors, liveNotebooks);
  const codeCalls = new CodeCalls({ store, sessions, work, liveNotebooks });
  const deletion = new NotebookDeletion({
    store,
    removals: options.removals,
    notebooks,
    sessions,
    secrets,
    runDeletion: options.runDeletion,
    prepareConversation: options.prepareConversationDeletion,
  });
  const edits = new NotebookEdits(sessions, liveNotebooks);
  const elementCalls = new ElementCalls({ store, sessions, actors, work, liveNotebooks });
  const interruptions = new SessionInterruptions({ actors, sessions, runs, work });
  const executions = new Executions({
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
  });
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
  return {
    notebooks,
    urlOf,
    deletion,
    secrets,
    plane,
    sessions,
    workspacesWithKernels: () => actors.residents().map(({ workspaceId }) => workspaceId),
    sessionList: new NotebookSessionList({ store, actors, notebooks, urlOf }),
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
    codeCalls,
    edits,
    elementCalls,
    interruptions,
    executions,
    files,
    elementFiles,
    pages: new NotebookPages({
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
      agents: options.agents,
      streams: options.pageStreams,
      installed: () => host.marimo,
      hosts: config.pageHosts,
      idleTimeoutS: config.idleTimeoutS,
      packages,
      elementFiles,
      maxElementFileBytes: maxElementFileBytes(config),
      log,
    }),
    frontEnd: new FrontEndFiles(() => host.marimo),
    /** The notebooks as the tools of agents use them. */
    forAgents: new NotebooksForAgents({ store, sessions, actors, work, liveNotebooks, codeCalls }),
  };
}
