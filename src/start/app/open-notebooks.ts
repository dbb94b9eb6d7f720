/** Opens the notebook plane: saved notebooks, their sessions and kernels, executions and code calls. */

import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { shownLimits } from '#src/confined/processes/limits.ts';
import type { SecretStore } from '#src/datasource/keys/secret-store.ts';
import { KernelQueryHandler } from '#src/datasource/query/kernel-query-handler.ts';
import type { Queries } from '#src/datasource/query/queries.ts';
import { LiveNotebooks } from '#src/notebook/open/live-notebooks.ts';
import type { NotebookRequestContext } from '#src/notebook/requests/request-context.ts';
import { EndingSessions } from '#src/notebook/sessions/ending-sessions.ts';
import { IdleSessions } from '#src/notebook/sessions/idle-sessions.ts';
import type { NotebookContext } from '#src/notebook/sessions/notebook-context.ts';
import { SessionActors } from '#src/notebook/sessions/notebook-session-actors.ts';
import { NotebookSessionList } from '#src/notebook/sessions/notebook-session-list.ts';
import { NotebookSessionPlaces } from '#src/notebook/sessions/notebook-session-places.ts';
import { NotebookSessions } from '#src/notebook/sessions/notebook-sessions.ts';
import { SessionEnds } from '#src/notebook/sessions/session-ends.ts';
import { SessionWork } from '#src/notebook/work/session-work.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { ElementFiles } from '#src/workspace/files/element-files.ts';
import type { WorkspaceFiles } from '#src/workspace/files/workspace-files.ts';
import { beginElementFileSweep } from './element-file-sweep.ts';
import type { Ground } from './ground.ts';
import type { Late } from './late-planes.ts';
import { openRequests } from './open-notebook-requests.ts';
import type { OpenedPackages } from './open-packages.ts';
import { openSaved, type Saved } from './open-saved.ts';

/** The ground of notebooks: the shared parts, and the planes that were opened before. */
export interface NotebookGround extends Ground, RunPlaneContext {
  readonly log: Ground['log'];
  readonly packages: OpenedPackages;
  readonly files: WorkspaceFiles;
  /** Runs the statements of notebook code. */
  readonly queries: Queries;
  /** Keeps the secret variables of notebooks. */
  readonly vault: SecretStore;
}

export type NotebookPlane = ReturnType<typeof openNotebooks>;

/** Opens the plane, one inner room of `src/notebook` after the other; `stack` takes ownership of its resources. */
export function openNotebooks(ground: NotebookGround, late: Late, stack: AsyncDisposableStack) {
  const saved = openSaved(ground, late, stack);
  const { context, plane, sessionList } = openSessions(ground, saved, late, stack);
  const { actors, liveNotebooks, sessions, elementFiles } = context;
  const requests = openRequests(context, saved.files, ground);
  return { ...saved, plane, actors, liveNotebooks, sessions, sessionList, elementFiles, ...requests };
}

/** Opens the notebooks in use, and their sessions. */
function openSessions(
  ground: NotebookGround,
  { notebooks, secrets, urlOf }: Saved,
  late: Late,
  stack: AsyncDisposableStack,
) {
  const { config, cluster, store, identity, queries, packages, prerequisites } = ground;
  const { directory, host } = prerequisites;
  const ends = new SessionEnds(store);
  const base: NotebookContext = {
    ...ground,
    notebooks,
    secrets,
    urlOf,
    liveNotebooks: new LiveNotebooks({
      store,
      notebooks,
      makeStream: ground.streams.makeStream,
      owns: cluster.owns.bind(cluster),
      onLoad: (session) => ends.loaded(session),
    }),
    places: new NotebookSessionPlaces(store),
    ends,
    packages: packages.workspaces,
    elementFiles: new ElementFiles(ground.files),
    limits: identity.limits,
    agents: () => late.planes.agents,
  };
  const sessionActors = new SessionActors(base, {
    kernels: packages.kernels,
    workspaceFiles: (workspaceId) => directory.workspaceFiles(workspaceId),
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
            ? identity.members.reader(workspaceId, openedBy.userId)
            : undefined;
        },
      }),
  });
  const { actors, plane } = sessionActors;
  const sessions = new NotebookSessions(base, sessionActors, () => ({
    confinement: host.confinement?.split(':', 1)[0] ?? null,
    network: config.kernelNetwork,
    ...shownLimits(host.limits),
  }));
  stack.use(new IdleSessions(base, actors));
  if (!store.isReadOnly) stack.use(new EndingSessions(base, actors));
  beginElementFileSweep(base, actors, stack);
  const work = new SessionWork(actors, base.liveNotebooks);
  const context: NotebookRequestContext = { ...base, actors, sessions, work };
  return { context, plane, sessionList: new NotebookSessionList(base, actors) };
}
