/**
 * Notebook sessions as the API has them: open, look, follow, close. Also the ports of the session's chart: where its
 * kernel comes from, what ending a piece of work means, what closing gives back.
 */

import {
  type NotebookSessionSnapshot,
  notebookSessionMachine,
  type SessionContext,
  type SessionMode,
  type SessionStatus,
  sessionStatus,
  type Work,
} from '#machines/notebook-session.ts';
import type { TerminalStatus } from '#machines/run.ts';
import type { Address } from '#src/actors/address.ts';
import type { ActorRuntime, Peek } from '#src/actors/runtime.ts';
import { timestamp } from '#src/core/clock.ts';
import { AppError, type Failure, notFound } from '#src/core/errors.ts';
import type { EnvironmentId, NotebookId, RunId, SessionId, WorkspaceId } from '#src/core/ids.ts';
import type { Envelope } from '#src/events/envelope.ts';
import type { EventSink, Subscription } from '#src/events/event-sink.ts';
import type { SessionStream } from '#src/events/session-stream.ts';
import type { KernelLaunch } from '#src/kernel/kernel.ts';
import type { RunBook } from '#src/runs/run-book.ts';
import { cellOutputRecords } from '#storage/notebooks.ts';
import type { Store } from '#storage/store.ts';
import { planRun, type RunCommand } from './execution-plan.ts';
import { type Kernels, kernelDriver } from './kernel-driver.ts';
import { LiveNotebook } from './live-notebook.ts';
import type { RunRecorder } from './run-recorder.ts';
import type { SavedNotebooks } from './saved-notebooks.ts';
import { shownStatus } from './view.ts';

export interface NotebookSessionRecord {
  readonly sessionId: string;
  readonly notebookId: string;
  readonly environmentId: string | null;
  readonly mode: SessionMode;
  readonly status: SessionStatus;
  readonly phases: Readonly<Record<string, number>>;
  readonly currentRunId: string | null;
  readonly cells: readonly { cellId: string; name: string; status: string; stale: boolean }[];
  readonly kernel: Readonly<Record<string, unknown>> | null;
  readonly error: Failure | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface OpenRequest {
  readonly notebookId: NotebookId;
  readonly environmentId: EnvironmentId;
  readonly mode: SessionMode;
}

export interface NotebookSessionsOptions {
  readonly store: Store;
  readonly actors: ActorRuntime;
  readonly notebooks: SavedNotebooks;
  readonly runs: RunBook;
  readonly kernels: Kernels;
  readonly makeStream: (sessionId: SessionId) => SessionStream;
  readonly workspaceFiles: (workspaceId: WorkspaceId) => string;
  /** Facts about every kernel, shown in the session record: versions and limits. */
  readonly kernelFacts: () => Readonly<Record<string, unknown>>;
  /** Sessions with a kernel at once; 0 is no limit. */
  readonly maxSessions: number;
}

export class NotebookSessions {
  readonly #options: NotebookSessionsOptions;
  readonly #live = new Map<string, LiveNotebook>();
  readonly #recorders = new Map<string, RunRecorder>();

  constructor(options: NotebookSessionsOptions) {
    this.#options = options;
    const { actors } = options;
    actors.define({ kind: 'notebook-session', machineVersion: 1, machine: this.#provideMachine() });
    actors.onNotice('notebook-session', (address, notice, committed) => {
      const live = this.#live.get(liveKey(address.workspaceId, address.id));
      if (notice.type === 'session.status') {
        const { status, reason } = notice as unknown as { status: SessionStatus; reason: string | null };
        live?.stream.publish(
          envelope('session.status', address.id, { status, ...(reason === null ? {} : { reason }) }),
          committed,
        );
      } else if (notice.type === 'session.closed') {
        this.#live.delete(liveKey(address.workspaceId, address.id));
        live?.stream.end(envelope('session.closed', address.id, { reason: 'closed' }), committed);
      }
    });
    actors.onNotice('run', (address, notice, committed) => {
      const { kind, sessionId, runId, status, error } = notice as unknown as RunNoticeFields;
      if (kind !== 'notebook') return;
      const data = { runId, status, ...(error === null ? {} : { error }) };
      this.#live
        .get(liveKey(address.workspaceId, sessionId))
        ?.stream.publish({ ...envelope('run-status', sessionId, data), runId } as Envelope, committed);
    });
  }

  /** Opens a session on a notebook in an environment; the session starts, which its stream and `record` show. */
  open(workspaceId: WorkspaceId, { notebookId, environmentId, mode }: OpenRequest): NotebookSessionRecord {
    const { actors, notebooks, maxSessions } = this.#options;
    notebooks.json(workspaceId, notebookId);
    const environment: Address = { workspaceId, kind: 'environment', id: environmentId };
    const address = sessionAddress(workspaceId, notebookId);
    const attach = { type: 'attachNotebook', sessionId: notebookId };
    const open = { type: 'open', environmentId, mode, at: timestamp() };
    actors.check(environment, attach);
    if (actors.peek(address) === undefined) actors.spawn(address, { workspaceId, notebookId });
    actors.check(address, open);
    if (maxSessions > 0 && actors.residents('notebook-session').length >= maxSessions) {
      throw new AppError(
        'at_capacity',
        `This server runs at most ${maxSessions} notebook sessions at once.`,
        {
          headers: { 'retry-after': '5' },
        },
      );
    }
    actors.ask(environment, attach);
    actors.ask(address, open);
    return this.#record(address, actors.peek(address)!);
  }

  /** The session as it is served. A session that is not closed comes back to life. Throws `not_found`. */
  record(workspaceId: WorkspaceId, sessionId: string): NotebookSessionRecord {
    const address = sessionAddress(workspaceId, sessionId);
    return this.#record(address, this.#awaken(address));
  }

  /** Throws `not_found` unless a session was ever opened on this notebook. */
  known(workspaceId: WorkspaceId, sessionId: string): void {
    this.#peek(sessionAddress(workspaceId, sessionId));
  }

  /** Resolves when what `record` shows is on disk; `undefined` when it is. */
  uncommitted(workspaceId: WorkspaceId, sessionId: string): Promise<void> | undefined {
    return this.#options.actors.uncommitted(sessionAddress(workspaceId, sessionId));
  }

  /** Closes; resolves with the final record once the kernel is gone. */
  async close(workspaceId: WorkspaceId, sessionId: string): Promise<NotebookSessionRecord> {
    const { actors } = this.#options;
    const address = sessionAddress(workspaceId, sessionId);
    this.#peek(address);
    const closed = new Promise<void>((resolve) => this.#whenClosed(address, resolve));
    actors.ask(address, { type: 'close' });
    await closed;
    return this.#record(address, actors.peek(address)!);
  }

  /** Attaches a subscriber: snapshot, replay, then live. A closed session answers snapshot and `session.closed`. */
  subscribe(
    workspaceId: WorkspaceId,
    sessionId: string,
    lastEventId: string,
  ): (sink: EventSink) => Subscription {
    const address = sessionAddress(workspaceId, sessionId);
    const status = sessionStatus(this.#awaken(address).snapshot as NotebookSessionSnapshot);
    const replay = () => this.#replay(address);
    if (status === 'closed') {
      return (sink) => {
        const stream = this.#options.makeStream(sessionId as SessionId);
        stream.end(envelope('session.closed', sessionId, { reason: 'closed' }));
        return stream.subscribe(sink, { replay });
      };
    }
    const { stream } = this.live(workspaceId, sessionId);
    return (sink) => stream.subscribe(sink, { lastEventId, replay });
  }

  /** The open notebook of a session that is not closed; made from what is saved when it is not in memory yet. */
  live(workspaceId: WorkspaceId, sessionId: string): LiveNotebook {
    const key = liveKey(workspaceId, sessionId);
    const known = this.#live.get(key);
    if (known !== undefined) return known;
    const { store, notebooks, makeStream } = this.#options;
    const outputs = new Map(
      [...store.list(cellOutputRecords, workspaceId, [sessionId], { limit: Number.POSITIVE_INFINITY })].map(
        ({ id, value }) => [id, value] as const,
      ),
    );
    const live = new LiveNotebook({
      workspaceId,
      sessionId: sessionId as SessionId,
      document: notebooks.read(workspaceId, sessionId),
      outputs,
      stream: makeStream(sessionId as SessionId),
      save: (document) => notebooks.save(workspaceId, document),
      committed: () => store.durable(),
    });
    this.#live.set(key, live);
    return live;
  }

  /** Whether a session is open on the notebook, in memory or not. */
  isOpen(workspaceId: WorkspaceId, notebookId: NotebookId): boolean {
    const peek = this.#options.actors.peek(sessionAddress(workspaceId, notebookId));
    return peek !== undefined && sessionStatus(peek.snapshot as NotebookSessionSnapshot) !== 'closed';
  }

  /** Ends every session's kernel and run for the end of the server; the sessions stay open. */
  suspendAll(failure: Failure): void {
    const { actors } = this.#options;
    for (const address of actors.residents('notebook-session'))
      actors.tell(address, { type: 'suspend', failure });
    for (const live of this.#live.values()) live.stream.resync('server_stopping');
  }

  #provideMachine() {
    return notebookSessionMachine.provide({
      actors: {
        kernel: kernelDriver({
          kernels: this.#options.kernels,
          liveOf: ({ workspaceId, notebookId }) => this.live(workspaceId, notebookId),
          launchOf: (context, live) => this.#launchOf(context, live),
          planOf: (work, command, live) => {
            const plan = planRun(work.id, command as RunCommand, live);
            this.#recorders.set(work.id, plan.recorder);
            return plan;
          },
        }),
      },
      actions: {
        endWork: ({ context }, params) => this.#endWork(context, params),
        release: ({ context }) => {
          const { workspaceId, notebookId, environmentId } = context;
          if (environmentId === null) return;
          this.#options.actors.tell(
            { workspaceId, kind: 'environment', id: environmentId },
            { type: 'detachNotebook', sessionId: notebookId },
          );
        },
      },
    });
  }

  #launchOf({ workspaceId, notebookId }: SessionContext, live: LiveNotebook): KernelLaunch {
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

  #endWork(
    context: SessionContext,
    { status, failure }: { status: TerminalStatus; failure: Failure | null },
  ): void {
    const work: Work | null = context.work;
    if (work === null) return;
    const { workspaceId, notebookId } = context;
    const recorder = this.#recorders.get(work.id);
    this.#recorders.delete(work.id);
    const live = this.live(workspaceId, notebookId);
    live.endCommand();
    const built = recorder?.output(live.view);
    this.#options.runs.finish(workspaceId, work.id as RunId, {
      status,
      error: failure,
      output: built?.output ?? null,
      assets: built?.shelf.assets ?? new Map(),
    });
    if (built?.output.stored === true) this.#keepOutputs(live, recorder!.ran);
  }

  #keepOutputs(live: LiveNotebook, ran: ReadonlySet<string>): void {
    this.#options.store.write((tx) => {
      for (const cellId of ran) {
        const cell = live.view.get(cellId);
        if (cell === undefined) continue;
        const { output, code } = cell;
        tx.put(
          cellOutputRecords,
          { output, console: cell.console.entries(), code },
          live.workspaceId,
          live.sessionId,
          cellId,
        );
      }
    });
  }

  #peek(address: Address): Peek {
    const peek = this.#options.actors.peek(address);
    const wasOpened = (peek?.snapshot.context as SessionContext | undefined)?.openedAt != null;
    if (peek === undefined || !wasOpened) throw notFound();
    return peek;
  }

  #awaken(address: Address): Peek {
    const { actors } = this.#options;
    const peek = this.#peek(address);
    if (sessionStatus(peek.snapshot as NotebookSessionSnapshot) === 'closed') return peek;
    if (!peek.live) actors.restore(address);
    actors.tell(address, { type: 'wake' });
    return this.#peek(address);
  }

  #whenClosed(address: Address, resolve: () => void): void {
    const stop = this.#options.actors.watch(address, (notice) => {
      if (notice.type !== 'session.closed') return;
      stop();
      resolve();
    });
  }

  #replay(address: Address): Envelope[] {
    const { workspaceId, id } = address;
    const peek = this.#peek(address);
    const snapshot = envelope('session.snapshot', id, { ...this.#record(address, peek) });
    const live = this.#live.get(liveKey(workspaceId, id));
    if (live === undefined) return [snapshot];
    const latest = this.#options.runs.latest(workspaceId, id);
    return [
      snapshot,
      ...live.replay().map((event) => envelope(event.type, id, event.data)),
      ...(latest === undefined
        ? []
        : [
            {
              ...envelope('run-status', id, {
                runId: latest.id,
                status: latest.status,
                ...(latest.error === null ? {} : { error: latest.error }),
              }),
              runId: latest.id,
            } as Envelope,
          ]),
    ];
  }

  #record({ workspaceId, id }: Address, { snapshot, createdAt, updatedAt }: Peek): NotebookSessionRecord {
    const context = snapshot.context as SessionContext;
    const status = sessionStatus(snapshot as NotebookSessionSnapshot);
    const live = this.#live.get(liveKey(workspaceId, id));
    return {
      sessionId: id,
      notebookId: id,
      environmentId: context.environmentId,
      mode: context.mode,
      status,
      phases: context.phases,
      currentRunId: context.work?.kind === 'run' ? context.work.id : null,
      cells: (live?.view.cells ?? []).map((cell) => ({
        cellId: cell.id,
        name: typeof cell.options.name === 'string' ? cell.options.name : '',
        status: shownStatus(cell),
        stale: cell.stale,
      })),
      kernel: status === 'ready' || status === 'busy' ? this.#options.kernelFacts() : null,
      error: context.failure,
      createdAt: context.openedAt ?? createdAt,
      updatedAt,
    };
  }
}

interface RunNoticeFields {
  readonly kind: string;
  readonly sessionId: string;
  readonly runId: string;
  readonly status: string;
  readonly error: Failure | null;
}

export function sessionAddress(workspaceId: WorkspaceId, sessionId: string): Address {
  return { workspaceId, kind: 'notebook-session', id: sessionId };
}

function liveKey(workspaceId: string, sessionId: string): string {
  return `${workspaceId}/${sessionId}`;
}

function envelope(type: string, sessionId: string, data: Readonly<Record<string, unknown>>): Envelope {
  return { type, sessionId, data } as unknown as Envelope;
}
