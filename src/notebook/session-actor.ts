/**
 * The actor of a notebook session: its chart with the ports provided (where its kernel comes from, what ending a piece
 * of work means, what closing gives back), and its notices turned into events of its stream.
 */

import {
  notebookSessionMachine,
  type SessionContext,
  type SessionStatus,
  type Work,
} from '#machines/notebook-session.ts';
import type { Address } from '#src/actors/address.ts';
import type { ActorEvent } from '#src/actors/notice-board.ts';
import type { ActorRuntime } from '#src/actors/runtime.ts';
import type { Failure } from '#src/core/errors.ts';
import { reach } from '#src/core/fault-points.ts';
import type { WorkspaceId } from '#src/core/ids.ts';
import type { Log } from '#src/core/log.ts';
import type { KernelLaunch } from '#src/kernel/kernel.ts';
import { type CallDesk, type Kernels, kernelDriver } from './kernel-driver.ts';
import type { LiveNotebook } from './live-notebook.ts';
import type { LiveNotebooks } from './live-notebooks.ts';
import type { WorkEnd, WorkPlan } from './work.ts';

export const SESSION_KIND = 'notebook-session';

export interface SessionActorsOptions {
  readonly actors: ActorRuntime;
  readonly liveNotebooks: LiveNotebooks;
  readonly kernels: Kernels;
  readonly workspaceFiles: (workspaceId: WorkspaceId) => string;
  /** Where what notebook code asks of its server is answered. */
  readonly openDesk: (context: SessionContext, live: LiveNotebook) => CallDesk;
  /** A session begins to close, or has closed at once: what is bound to it closes as well, in this turn. Idempotent. */
  readonly onClosing: (workspaceId: WorkspaceId, sessionId: string) => void;
  readonly log: Pick<Log, 'error'>;
}

export class SessionActors {
  readonly #options: SessionActorsOptions;
  readonly #plans = new Map<string, WorkPlan>();

  constructor(options: SessionActorsOptions) {
    this.#options = options;
    const { actors } = options;
    actors.define({ kind: SESSION_KIND, machineVersion: 1, machine: this.#provideMachine() });
    actors.onNotice(SESSION_KIND, (address, notice, committed) => this.#publish(address, notice, committed));
    actors.onNotice('run', ({ workspaceId }, notice, committed) => {
      const { kind, sessionId, runId, status, error } = notice as unknown as RunNoticeFields;
      if (kind !== 'notebook') return;
      const live = options.liveNotebooks.peek(workspaceId, sessionId);
      const data = { runId, status, ...(error === null ? {} : { error }) };
      live?.publishRunStatus({ type: 'run-status', sessionId, runId, data }, committed);
    });
  }

  /** Throws what the session's state has against taking work now. */
  check(address: Address, kind: Work['kind'], edits: boolean): void {
    this.#options.actors.check(address, { type: 'execute', work: { kind, id: '' }, edits });
  }

  /** Gives the session a piece of work; `plan.ended` is called exactly once, unless this throws the refusal. */
  start(address: Address, work: Work, edits: boolean, plan: WorkPlan): void {
    this.#plans.set(work.id, plan);
    try {
      this.#options.actors.ask(address, { type: 'execute', work, edits });
    } catch (error) {
      this.#plans.delete(work.id);
      throw error;
    }
  }

  #provideMachine() {
    const { actors, liveNotebooks, kernels, onClosing, log } = this.#options;
    return notebookSessionMachine.provide({
      actors: {
        kernel: kernelDriver({
          kernels,
          liveOf: ({ workspaceId, notebookId }) => liveNotebooks.of(workspaceId, notebookId),
          launchOf: (context, live) => this.#launch(context, live),
          deskOf: this.#options.openDesk,
          planOf: (work) => {
            const plan = this.#plans.get(work.id);
            if (plan === undefined) throw new Error(`The work ${work.id} has no plan.`);
            return plan;
          },
          log,
        }),
      },
      actions: {
        endWork: ({ context }, end) => this.#endWork(context, end),
        release: ({ context: { workspaceId, notebookId, environmentId } }) => {
          reach('session.released');
          if (environmentId === null) return;
          const environment = { workspaceId, kind: 'environment', id: environmentId };
          actors.tell(environment, { type: 'detachNotebook', sessionId: notebookId });
        },
        closeBound: ({ context: { workspaceId, notebookId } }) => onClosing(workspaceId, notebookId),
      },
    });
  }

  #launch({ workspaceId, notebookId }: SessionContext, live: LiveNotebook): KernelLaunch {
    const { variables, serialization } = live.document;
    return {
      id: notebookId,
      cwd: this.#options.workspaceFiles(workspaceId),
      env: variables,
      cells: live.launchCells(),
      appOptions: serialization.app.options,
      uiValues: serialization.ui_values,
    };
  }

  #endWork({ work, workspaceId, notebookId }: SessionContext, end: WorkEnd): void {
    if (work === null) return;
    const plan = this.#plans.get(work.id);
    this.#plans.delete(work.id);
    const live = this.#options.liveNotebooks.of(workspaceId, notebookId);
    live.endWork();
    plan?.ended(end, live);
  }

  #publish({ workspaceId, id }: Address, notice: ActorEvent, committed: Promise<void>): void {
    const { liveNotebooks } = this.#options;
    const live = liveNotebooks.peek(workspaceId, id);
    if (notice.type === 'session.status') {
      const { status, reason } = notice as unknown as { status: SessionStatus; reason: string | null };
      const data = { status, ...(reason === null ? {} : { reason }) };
      live?.stream.publish({ type: 'session.status', sessionId: id, data }, committed);
    } else if (notice.type === 'session.closed') {
      liveNotebooks.forget(workspaceId, id);
      live?.stream.end({ type: 'session.closed', sessionId: id, data: { reason: 'closed' } }, committed);
    }
  }
}

interface RunNoticeFields {
  readonly kind: string;
  readonly sessionId: string;
  readonly runId: string;
  readonly status: string;
  readonly error: Failure | null;
}
