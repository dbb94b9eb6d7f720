/** Opens, reads, follows and closes notebook sessions for the API. The chart of a session accepts or refuses commands. */

import {
  isStarting,
  isWaking,
  type Lifetime,
  type notebookSessionMachine,
  type Opener,
} from '#machines/notebook-session.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { type EnvironmentId, type NotebookId, sessionIdOf, type WorkspaceId } from '#src/base/ids.ts';
import { happensWithin } from '#src/base/time/happens-within.ts';
import type { CellOutput } from '#src/confined/processes/kernel/messages.ts';
import type { Envelope } from '#src/contract/wire/events.ts';
import type { NotebookSession, SessionMode } from '#src/contract/wire/session.ts';
import type { Peek } from '#src/runtime/actors/actor-definition.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { EventSink, Subscription } from '#src/runtime/events/event-sink.ts';
import type { SessionPlane, StreamRequest } from '#src/runtime/sessions/session-plane.ts';
import type { Transaction } from '#storage/transaction.ts';
import { replayOf } from '../open/cell-events.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import { referencedOutput } from '../open/streamed-outputs.ts';
import { NotebookView } from '../open/view.ts';
import type { NotebookContext } from './notebook-context.ts';
import type { NotebookSessionActors, SessionActors } from './notebook-session-actors.ts';
import { notebookStatusOf, type RecordParts, sessionRecord } from './notebook-session-record.ts';
import { SessionJson } from './session-json.ts';
import { SessionRoom } from './session-room.ts';

export interface OpenRequest {
  readonly notebookId: NotebookId;
  readonly environmentId: EnvironmentId;
  readonly mode: SessionMode;
  readonly arguments: readonly string[];
  readonly by: Opener;
  readonly lifetime: Lifetime;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** A session that a request uses. It may be awake, being woken, or closed. */
export interface SessionInUse {
  readonly session: ActorId;
  readonly isClosed: boolean;
  readonly mode: SessionMode;
  /** The open notebook; undefined when the session was not in memory. */
  readonly live: LiveNotebook | undefined;
  readonly environmentId: EnvironmentId | null;
}

/** How long a request waits for the kernel of a session that it has woken. Packages that are missing may take longer. */
const MAX_WAKING_MS = 30_000;

export class NotebookSessions {
  readonly #context: NotebookContext;
  readonly #actors: NotebookSessionActors;
  readonly #plane: SessionPlane<LiveNotebook>;
  readonly #kernelFacts: () => RecordParts['kernelFacts'];
  readonly #json = new SessionJson();
  /** The room for sessions with a kernel. */
  readonly room: SessionRoom;

  /** `kernelFacts` returns the facts about every kernel in the session record: versions and limits. */
  constructor(
    context: NotebookContext,
    { actors, plane }: SessionActors,
    kernelFacts: () => RecordParts['kernelFacts'],
  ) {
    this.#context = context;
    this.#actors = actors;
    this.#plane = plane;
    this.#kernelFacts = kernelFacts;
    const { config, limits } = context;
    const limitOf = limits.of.bind(limits);
    this.room = new SessionRoom(
      { maxSessions: config.maxSessions, limitOf },
      {
        residentsOfAll: () => actors.residentsOfAll(),
        openerOf: (session) => actors.peek(session)?.snapshot.context.openedBy?.userId,
      },
    );
  }

  /**
   * Opens a session on a notebook in an environment. The stream of the session and `record` show its start. Throws `not_found`
   * with the member that names an unknown object, and the refusals of environment and session.
   */
  open(workspaceId: WorkspaceId, { notebookId, environmentId, ...how }: OpenRequest): NotebookSession {
    const { notebooks, places, ends } = this.#context;
    const actors = this.#actors;
    const environments = this.#context.environments.actors;
    const environment = { workspaceId, id: environmentId };
    if (!notebooks.exists(workspaceId, notebookId)) throw notFound('/notebookId');
    if (environments.peek(environment) === undefined) throw notFound('/environmentId');
    const session = { workspaceId, id: notebookId };
    const attach = { type: 'attachNotebook', sessionId: sessionIdOf(notebookId) } as const;
    const at = places.timeOfOpening(workspaceId);
    const open = { type: 'open', environmentId, ...how, at } as const;
    environments.check(environment, attach);
    if (actors.peek(session) === undefined) actors.spawn(session, { workspaceId, notebookId });
    actors.check(session, open);
    this.room.admit(workspaceId, how.by.userId);
    environments.ask(environment, attach);
    const openedBefore = actors.peek(session)?.snapshot.context.openedAt ?? null;
    actors.ask(session, open);
    places.open(workspaceId, notebookId, at, openedBefore);
    ends.opened(session, at, how.lifetime);
    return this.#record(session);
  }

  /** Returns the session in the form that the API returns. Wakes it unless it is closed. Throws `not_found`. */
  record(workspaceId: WorkspaceId, sessionId: string): NotebookSession {
    return this.#record(this.ensureAwake(workspaceId, sessionId));
  }

  /** Returns the result of `record` as JSON, unless its JSON is so long that it has to be written in slices. */
  recordJson(workspaceId: WorkspaceId, sessionId: string): Uint8Array | NotebookSession {
    const session = this.ensureAwake(workspaceId, sessionId);
    const live = this.#context.liveNotebooks.peek(session);
    return live === undefined ? this.#record(session) : this.#json.of(live, this.#partsOf(session, live));
  }

  /**
   * Reads a large notebook that is not in memory, in slices. Once the promise has resolved, the session of the notebook can be
   * used or opened at once. Returns undefined when there is nothing to wait for.
   */
  prepare(workspaceId: WorkspaceId, sessionId: string, isOpened = false): Promise<void> | undefined {
    const { liveNotebooks, notebooks } = this.#context;
    const actors = this.#actors;
    const session = { workspaceId, id: sessionId };
    if (liveNotebooks.peek(session) !== undefined) return undefined;
    const document = notebooks.prepare(workspaceId, sessionId);
    const peek = isOpened ? undefined : actors.peek(session);
    // The outputs of a session that stays closed are not shown, so they are not read.
    const isClosed = peek !== undefined && notebookStatusOf(peek) === 'closed';
    const outputs = isClosed ? undefined : liveNotebooks.prepareOutputs(session);
    if (document === undefined || outputs === undefined) return document ?? outputs;
    return Promise.all([document, outputs]).then(() => undefined);
  }

  /** Prepares a session, and then returns the result of `use`, which uses the session. */
  whenReadable<T>(workspaceId: WorkspaceId, sessionId: string, use: () => T | Promise<T>): T | Promise<T> {
    const prepared = this.prepare(workspaceId, sessionId);
    return prepared === undefined ? use() : prepared.then(use);
  }

  /** Throws `not_found` when no session was ever opened on this notebook. */
  known(workspaceId: WorkspaceId, sessionId: string): void {
    this.#peek({ workspaceId, id: sessionId });
  }

  /** Returns whether the session is closed, without waking it. Throws `not_found`. */
  isClosed(workspaceId: WorkspaceId, sessionId: string): boolean {
    return notebookStatusOf(this.#peek({ workspaceId, id: sessionId })) === 'closed';
  }

  /** Returns the mode of a session, without waking it; undefined when the session is closed. Throws `not_found`. */
  modeOf(workspaceId: WorkspaceId, sessionId: string): NotebookSession['mode'] | undefined {
    const peek = this.#peek({ workspaceId, id: sessionId });
    return notebookStatusOf(peek) === 'closed' ? undefined : peek.snapshot.context.mode;
  }

  /**
   * Wakes a session that is not closed and returns its id. Throws `not_found`, and the refusal of
   * `open` when there are too many sessions.
   */
  ensureAwake(workspaceId: WorkspaceId, sessionId: string): ActorId {
    return this.use(workspaceId, sessionId).session;
  }

  /**
   * Wakes a session for a change of its notebook and returns its id. The session may be busy. Throws the errors of `ensureAwake`,
   * `session_closed`, and `session_not_editable` for a session that runs its notebook as an app.
   */
  toEdit(workspaceId: WorkspaceId, sessionId: string): ActorId {
    const peek = this.#peek({ workspaceId, id: sessionId });
    const status = notebookStatusOf(peek);
    if (status === 'closed' || status === 'closing')
      throw new AppError('session_closed', `The session ${sessionId} is closed. Open it again first.`);
    if (peek.snapshot.context.mode === 'run')
      throw new AppError(
        'session_not_editable',
        `The session ${sessionId} is in run mode. To change the notebook, open it in edit mode.`,
      );
    return this.ensureAwake(workspaceId, sessionId);
  }

  /** Wakes a session as `ensureAwake` does, and returns its state. */
  use(workspaceId: WorkspaceId, sessionId: string): SessionInUse {
    const { liveNotebooks } = this.#context;
    const actors = this.#actors;
    const session = { workspaceId, id: sessionId };
    const peek = this.#peek(session);
    const live = liveNotebooks.peek(session);
    const { environmentId, mode } = peek.snapshot.context;
    const wakes = !isAwake(peek);
    const isClosed = wakes && notebookStatusOf(peek) === 'closed';
    const used = { session, isClosed, mode, live, environmentId };
    if (isClosed) return used;
    if (wakes && (!peek.live || peek.snapshot.can({ type: 'wake' })))
      this.room.admit(workspaceId, peek.snapshot.context.openedBy?.userId);
    live?.touch();
    if (!wakes) return used;
    if (!peek.live) actors.restore(session);
    actors.tell(session, { type: 'wake' });
    return used;
  }

  /**
   * Wakes a session that sleeps, and waits up to 30 s for its kernel, so that the first request that needs the kernel is not
   * refused. Returns undefined when there is nothing to wait for, because the session has a kernel. Also returns undefined when
   * the session is being opened, or has lost its kernel during use: its status shows that, and its chart refuses commands. Throws
   * the errors of `ensureAwake`. Rejects with `unavailable` when the session is put to sleep meanwhile, and when the signal
   * aborts.
   */
  whenAwake(
    workspaceId: WorkspaceId,
    sessionId: string,
    signalOf: () => AbortSignal,
  ): Promise<void> | undefined {
    const session = { workspaceId, id: sessionId };
    const peek = this.#peek(session);
    const live = this.#context.liveNotebooks.peek(session);
    if (live !== undefined && isAwake(peek) && !isWaking(peek.snapshot)) return undefined;
    const prepared = this.prepare(workspaceId, sessionId);
    const wake = () => this.#whenAwake(this.ensureAwake(workspaceId, sessionId), signalOf);
    return prepared === undefined ? wake() : prepared.then(wake);
  }

  #whenAwake(session: ActorId, signalOf: () => AbortSignal): Promise<void> | undefined {
    const actors = this.#actors;
    if (!isWaking(this.#peek(session).snapshot)) return undefined;
    const signal = signalOf();
    const hasStarted = () => {
      const peek = actors.peek(session);
      return peek === undefined || !isStarting(peek.snapshot);
    };
    const started = happensWithin(MAX_WAKING_MS, signal, (happened) =>
      actors.watch(session, () => {
        if (hasStarted()) happened();
      }),
    );
    return started.then(() => {
      // The session sleeps again because the server stops or somebody has put it to sleep. The request must not start another kernel.
      if (signal.aborted || actors.peek(session)?.snapshot.matches('dormant') === true)
        throw new AppError(
          'unavailable',
          'The session sleeps again, because its kernel was stopped during the start.',
        );
    });
  }

  /**
   * Starts the kernel of a session that sleeps or whose server ended. A session that is awake stays unchanged. Throws
   * `not_found`, the refusal of `open` when there are too many sessions, and the refusal of a session that is closed or has just
   * failed.
   */
  wake(workspaceId: WorkspaceId, sessionId: string): NotebookSession {
    const session = this.ensureAwake(workspaceId, sessionId);
    const peek = this.#peek(session);
    const isAwake = peek.snapshot.hasTag('resident') && notebookStatusOf(peek) !== 'closing';
    if (!isAwake) this.#actors.check(session, { type: 'wake' });
    return this.#record(session);
  }

  /** Puts a session to sleep, which ends its kernel. Throws `not_found`, and the refusal of a session that is not ready. */
  hibernate(workspaceId: WorkspaceId, sessionId: string): NotebookSession {
    const { liveNotebooks, ends } = this.#context;
    const actors = this.#actors;
    const session = { workspaceId, id: sessionId };
    // The kernel has ended with its server. A command to the actor would start another kernel.
    if (this.#peek(session).isLost) return this.#record(session);
    actors.ask(session, { type: 'hibernate', reason: 'hibernated' });
    const record = this.#record(session);
    const live = liveNotebooks.peek(session);
    if (live !== undefined) ends.leaving(live);
    liveNotebooks.forget(session);
    return record;
  }

  /**
   * Closes the session in the name of the user `by`. Resolves with the final record of the session once its kernel has ended.
   * Rejects with `session_closed` when the session is already closed.
   */
  async close(workspaceId: WorkspaceId, sessionId: string, by: string): Promise<NotebookSession> {
    const actors = this.#actors;
    const session = { workspaceId, id: sessionId };
    this.#peek(session);
    actors.check(session, { type: 'close' }); // refuses before the watcher below is added, because nothing would remove that watcher
    const closed = new Promise<void>((resolve) => {
      const stop = actors.watch(session, (notice) => {
        if (notice.type !== 'session.closed') return;
        stop();
        resolve();
      });
    });
    actors.ask(session, { type: 'close', by });
    await closed;
    return this.whenReadable(workspaceId, sessionId, () => this.#record(session));
  }

  /**
   * Returns a function that attaches a subscriber, which gets the snapshot, missed events, the state, and then live events;
   * undefined when the session is closed. An observer does not wake the session. Throws `not_found` at once.
   */
  subscribe(
    workspaceId: WorkspaceId,
    sessionId: string,
    { lastEventId, observe }: StreamRequest,
  ): ((sink: EventSink) => Subscription) | undefined {
    const observes = observe || this.#actors.isReadOnly;
    const session = observes ? { workspaceId, id: sessionId } : this.ensureAwake(workspaceId, sessionId);
    if (notebookStatusOf(this.#peek(session)) === 'closed') return undefined;
    const replay = () => this.#replay(session);
    return this.#plane.follow(session, { lastEventId, observes, replay });
  }

  /**
   * Returns an output that events of the session name as an asset, without waking the session. Throws `not_found` when the
   * notebook no longer shows the output.
   */
  asset(workspaceId: WorkspaceId, sessionId: string, assetId: string): CellOutput {
    const session = { workspaceId, id: sessionId };
    if (this.isClosed(workspaceId, sessionId)) throw notFound();
    const output = referencedOutput(this.#context.liveNotebooks.viewOf(session).shown(), assetId);
    if (output === undefined) throw notFound();
    return output;
  }

  /** Removes the closed session of a deleted notebook, if it had one, with the session's places in lists. */
  erase(tx: Transaction, workspaceId: WorkspaceId, notebookId: string): void {
    const { places, ends } = this.#context;
    const actors = this.#actors;
    const session = { workspaceId, id: notebookId };
    ends.erase(tx, session);
    const openedAt = actors.peek(session)?.snapshot.context.openedAt ?? null;
    if (openedAt !== null) places.erase(tx, workspaceId, notebookId, openedAt);
    actors.erase(tx, session);
  }

  /** Throws `session_open` while a session is open on the notebook, whether it is in memory or not. */
  refuseWhileOpen(workspaceId: WorkspaceId, notebookId: string): void {
    this.#actors.checkStored({ workspaceId, id: notebookId }, { type: 'changeSaved' });
  }

  #peek(session: ActorId): Peek<typeof notebookSessionMachine> {
    const peek = this.#actors.peek(session);
    if (peek === undefined || peek.snapshot.context.openedAt === null) throw notFound();
    return peek;
  }

  /** Returns the record. A session that is not in memory shows the saved notebook, of which no cell has run. */
  #record(session: ActorId): NotebookSession {
    const { liveNotebooks, notebooks } = this.#context;
    const { workspaceId, id } = session;
    const saved = () => {
      const document = notebooks.find(workspaceId, id); // undefined when the notebook was deleted
      const view = new NotebookView(document?.serialization.cells ?? [], document?.updatedAt);
      return { view, startup: null, notes: [] };
    };
    return sessionRecord(this.#partsOf(session, liveNotebooks.peek(session) ?? saved()));
  }

  #partsOf(session: ActorId, shown: RecordParts['shown']): RecordParts {
    const { urlOf } = this.#context;
    const kernelFacts = this.#kernelFacts;
    const sessionId = session.id;
    const peek = this.#peek(session);
    return { sessionId, peek, shown, kernelFacts: kernelFacts(), url: urlOf(sessionId) };
  }

  #replay(session: ActorId): Envelope[] {
    const { liveNotebooks } = this.#context;
    const plane = this.#plane;
    const live = liveNotebooks.peek(session);
    const latest = plane.latestRunStatus(session);
    const isKnown = live?.ends.some(({ runId }) => runId === latest?.runId) === true;
    return [
      { type: 'session.snapshot', sessionId: session.id, data: this.#record(session) },
      ...(live?.replay() ?? replayOf(liveNotebooks.viewOf(session), session.id)),
      ...(live?.ends ?? []),
      ...(latest === undefined || isKnown ? [] : [latest]),
    ];
  }
}

/** Returns whether the session has a kernel or is about to have one. */
function isAwake({ live, snapshot }: Peek<typeof notebookSessionMachine>): boolean {
  return live && snapshot.hasTag('resident');
}
