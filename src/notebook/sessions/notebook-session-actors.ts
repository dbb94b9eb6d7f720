/**
 * The actors of notebook sessions: their chart with its ports provided. The ports start kernels, deliver the end of
 * work, and release the resources of a session when it closes.
 */

import { notebookSessionMachine, type SessionContext } from '#machines/notebook-session.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import { faultPoint } from '#src/base/fault-points.ts';
import { sessionIdOf, type WorkspaceId } from '#src/base/ids.ts';
import type { KernelLaunch } from '#src/confined/processes/kernel/kernel.ts';
import type { ActorKind } from '#src/runtime/actors/actor-kind.ts';
import { type Occupation, refusalFacts } from '#src/runtime/sessions/refusal-facts.ts';
import { SessionPlane } from '#src/runtime/sessions/session-plane.ts';
import { type KernelDriverPorts, type Kernels, kernelDriver } from '../open/kernel-driver.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import { titleOf } from '../saved/document.ts';
import { fileStem } from '../saved/file-stem.ts';
import type { NotebookContext } from './notebook-context.ts';

export type NotebookSessionActors = ActorKind<typeof notebookSessionMachine>;

export interface SessionActorsOptions {
  readonly kernels: Kernels;
  readonly workspaceFiles: (workspaceId: WorkspaceId) => string;
  /** Returns the handler of requests from a session's notebook code to the server. */
  readonly openRpcHandler: KernelDriverPorts['rpcHandlerOf'];
}

export class SessionActors {
  readonly actors: NotebookSessionActors;
  readonly plane: SessionPlane<LiveNotebook>;
  readonly #context: NotebookContext;
  readonly #options: SessionActorsOptions;

  constructor(context: NotebookContext, options: SessionActorsOptions) {
    this.#context = context;
    this.#options = options;
    this.actors = context.runtime.define({
      kind: 'notebook-session',
      machineVersion: 1,
      machine: this.#provideMachine(),
      restored: { type: 'restored' },
      homeOf: ({ notebookId }) => notebookId,
      isCounted: true,
      refused: (code, context) => refusalFacts(code, occupationOf(context), context),
      shown: ({ environmentId, work, mode, openedAt, openedBy, phases, failure, earlyDeaths }) => ({
        links: [
          ...(environmentId === null ? [] : [{ kind: 'environment', id: environmentId }]),
          ...(work?.kind === 'run' ? [{ kind: 'run', id: work.id }] : []),
        ],
        context: {
          mode,
          openedAt,
          openedBy: openedBy?.userId ?? null,
          work: work?.kind ?? null,
          phases,
          failure: failure?.code ?? null,
          earlyDeaths,
        },
      }),
    });
    const { liveNotebooks: live, runs } = context;
    this.plane = new SessionPlane(runs, { actors: this.actors, live, runKind: 'notebook' });
  }

  #provideMachine() {
    const { store, environments, liveNotebooks, agents, places, ends } = this.#context;
    const { kernels, openRpcHandler: rpcHandlerOf } = this.#options;
    return notebookSessionMachine.provide({
      actors: {
        kernel: kernelDriver(this.#context, {
          kernels,
          launchOf: (context, live) => this.#launch(context, live),
          rpcHandlerOf,
          forgetFiles: ({ workspaceId, notebookId }) => this.#forgetFiles(workspaceId, notebookId),
        }),
      },
      actions: {
        endWork: ({ context: { workspaceId, notebookId, work } }, end) => {
          if (work !== null) liveNotebooks.of({ workspaceId, id: notebookId }).endWork(work, end);
        },
        release: ({ context: { workspaceId, notebookId, environmentId, openedAt } }) => {
          faultPoint('session.released');
          if (openedAt !== null) places.close(workspaceId, notebookId, openedAt);
          ends.closed({ workspaceId, id: notebookId });
          // Removes files that arrive while the session closes. A request whose file arrives later sees that the session is
          // closed, and removes the file itself.
          const closed = Promise.resolve(store.durable()).then(() =>
            this.#forgetFiles(workspaceId, notebookId),
          );
          unawaited(closed, 'notebook-session-actors: the files of a closed session');
          if (environmentId === null) return;
          const detach = { type: 'detachNotebook', sessionId: sessionIdOf(notebookId) } as const;
          store.decide(() => environments.actors.tell({ workspaceId, id: environmentId }, detach));
        },
        closeBound: ({ context: { workspaceId, notebookId, closedBy } }) =>
          agents().closeBound(workspaceId, notebookId, closedBy ?? undefined),
      },
    });
  }

  #forgetFiles(workspaceId: WorkspaceId, notebookId: string): void {
    unawaited(
      this.#context.elementFiles.clear({ workspaceId, sessionId: notebookId }),
      'notebook-session-actors: the files of a kernel that has ended',
    );
  }

  #launch({ workspaceId, notebookId, arguments: words }: SessionContext, live: LiveNotebook): KernelLaunch {
    const { variables, serialization } = live.document;
    return {
      id: notebookId,
      cwd: this.#options.workspaceFiles(workspaceId),
      fileName: `${fileStem(titleOf(serialization)) ?? notebookId}.py`,
      env: variables,
      secrets: this.#context.secrets.open(workspaceId, notebookId),
      arguments: words ?? [],
      cells: live.launchCells(),
      appOptions: serialization.app.options,
      script: headerOf(serialization.app.options),
      requirements: this.#context.packages.requirementsOf(workspaceId),
      elementFiles: this.#context.elementFiles.pathOf(notebookId),
      workspaceId,
      uiValues: serialization.ui_values,
    };
  }
}

/**
 * Returns the work of a session in the form that others see. A code call shows no run, because the run may belong to a private
 * conversation.
 */
function occupationOf({ work }: SessionContext): Occupation | undefined {
  if (work === null) return undefined;
  const { kind, id, by } = work;
  return { kind, runId: kind === 'run' ? id : undefined, by };
}

/** Returns the header of the notebook's file; undefined when the file has none. */
function headerOf({ header }: Readonly<Record<string, unknown>>): string | undefined {
  return typeof header === 'string' ? header : undefined;
}
