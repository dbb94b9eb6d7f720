import { invariant } from '#src/base/errors/invariant.ts';
import type { SessionId, WorkspaceId } from '#src/base/ids.ts';
import type { Envelope } from '#src/contract/wire/events.ts';
import type { ActorId } from '../actors/address.ts';
import type { SessionStream } from '../events/session-stream.ts';
import { KeptStreams } from './kept-streams.ts';

/**
 * The state in memory of a session that is not closed, apart from its actor. Disposing of it does not end its stream.
 */
export interface LiveSession extends Disposable {
  readonly workspaceId: WorkspaceId;
  readonly sessionId: SessionId;
  readonly stream: SessionStream;
  /** Publishes a run's new status to subscribers, once it is committed. */
  publishRunStatus(event: Envelope<'run-status'>, committed: Promise<void> | undefined): void;
}

export type StreamMaker = (sessionId: SessionId) => SessionStream;

/** Returns whether this worker makes all decisions about a session. */
export type OwnsSession = (workspaceId: string, sessionId: string) => boolean;

/** The stream of a session that is not in memory. */
interface ParkedStream {
  readonly session: ActorId;
  readonly stream: SessionStream;
  readonly stopListening: () => void;
}

/**
 * The sessions of one kind that are in memory. Any other session is loaded from its stored state on use. The stream of a session
 * stays while it has followers, whether the session is in memory or not. Followers do not wake a sleeping session, but see it
 * wake. A stream without followers may be kept for a while, so that a client whose connection was cut gets the missed events.
 *
 * Only the home of a session loads the session or makes its stream. In another worker, the session would show an old state and
 * report no changes, so a request for it there is a bug and throws.
 */
export abstract class LiveSessions<Live extends LiveSession> {
  readonly #makeStream: StreamMaker;
  readonly #owns: OwnsSession;
  readonly #live = new Map<string, Live>();
  readonly #parked = new Map<string, ParkedStream>();
  readonly #kept = new KeptStreams((key) => this.#unparkUnfollowed(key));

  constructor(makeStream: StreamMaker, owns: OwnsSession = () => true) {
    this.#makeStream = makeStream;
    this.#owns = owns;
  }

  /** Makes the session from its stored state. */
  protected abstract load(session: ActorId, stream: SessionStream): Live;

  /**
   * Returns the object that replaces a closed session in memory; undefined when nothing replaces it. In this class nothing does,
   * because the stream of the session has ended.
   */
  protected succeed(_closed: Live, _newStream: () => SessionStream): Live | undefined {
    return undefined;
  }

  /** Returns a session that is not closed. If the session is not in memory, it is loaded. */
  of(session: ActorId): Live {
    const known = this.peek(session);
    if (known !== undefined) return known;
    const live = this.load(session, this.#unpark(session) ?? this.#newStream(session));
    this.#live.set(keyOf(session), live);
    return live;
  }

  /** Returns a session if it is in memory. */
  peek(session: ActorId): Live | undefined {
    return this.#live.get(keyOf(session));
  }

  /**
   * Returns the stream of a session if the session is in memory, the stream has followers, or the stream is kept.
   */
  streamOf(session: ActorId): SessionStream | undefined {
    const key = keyOf(session);
    return (this.#live.get(key) ?? this.#parked.get(key))?.stream;
  }

  /**
   * Calls `attach` with the stream of a session that is not closed, without loading the session.
   * Returns the result of `attach`.
   */
  observe<T>(session: ActorId, attach: (stream: SessionStream) => T): T {
    const known = this.streamOf(session);
    if (known !== undefined) return attach(known);
    const stream = this.#newStream(session);
    this.#park(session, stream);
    try {
      return attach(stream);
    } finally {
      if (this.#parked.get(keyOf(session))?.stream === stream) this.#unparkUnfollowed(keyOf(session));
    }
  }

  /** Takes a session out of memory. Its followers stay. */
  forget(session: ActorId): void {
    const live = this.peek(session);
    if (live === undefined) return;
    this.#live.delete(keyOf(session));
    live[Symbol.dispose]();
    if (live.stream.subscriberCount > 0) this.#park(session, live.stream);
  }

  /** Takes an unused session out of memory. If its stream has events, the stream is kept for a while. */
  protected rest(session: ActorId): void {
    const live = this.peek(session);
    this.forget(session);
    const { resumableBytes = 0, isEnded } = live?.stream ?? {};
    if (live === undefined || resumableBytes === 0 || isEnded === true) return;
    const key = keyOf(session);
    if (!this.#parked.has(key)) this.#park(session, live.stream);
    this.#kept.add(key, resumableBytes);
  }

  /**
   * Removes sessions that now belong to another worker from memory, with their streams if nobody follows them. The other worker
   * changes their stored state and makes their events.
   */
  leaveTo(isElsewhere: (workspaceId: string, id: string) => boolean): void {
    for (const { workspaceId, sessionId } of [...this.#live.values()])
      if (isElsewhere(workspaceId, sessionId)) this.forget({ workspaceId, id: sessionId });
    for (const [key, { session }] of [...this.#parked]) {
      if (!isElsewhere(session.workspaceId, session.id)) continue;
      this.#kept.delete(key);
      this.#unparkUnfollowed(key);
    }
  }

  /**
   * Takes a closing session out of memory and returns its stream, if there is one. The caller ends
   * the stream.
   */
  retire(session: ActorId): SessionStream | undefined {
    const closed = this.peek(session);
    if (closed === undefined) return this.#unpark(session);
    const successor = this.succeed(closed, () => this.#newStream(session));
    this.#live.delete(keyOf(session));
    closed[Symbol.dispose]();
    if (successor !== undefined) this.#live.set(keyOf(session), successor);
    return closed.stream;
  }

  all(): Iterable<Live> {
    return this.#live.values();
  }

  /** Yields the stream of every session that is in memory or followed, and the kept streams. */
  *streams(): Generator<SessionStream> {
    for (const { stream } of this.#live.values()) yield stream;
    for (const { stream } of this.#parked.values()) yield stream;
  }

  #park(session: ActorId, stream: SessionStream): void {
    const key = keyOf(session);
    const stopListening = stream.onEmpty(() => this.#unparkUnfollowed(key));
    this.#parked.set(key, { session, stream, stopListening });
  }

  #unparkUnfollowed(key: string): void {
    const parked = this.#parked.get(key);
    if (parked?.stream.subscriberCount === 0 && !this.#kept.has(key)) this.#unpark(parked.session);
  }

  #unpark(session: ActorId): SessionStream | undefined {
    const key = keyOf(session);
    const parked = this.#parked.get(key);
    this.#parked.delete(key);
    this.#kept.delete(key);
    parked?.stopListening();
    return parked?.stream;
  }

  #newStream({ workspaceId, id }: ActorId): SessionStream {
    const isAtHome = this.#owns(workspaceId, id);
    invariant(isAtHome, 'The stream of a session begins only in the worker that is its home.', id);
    return this.#makeStream(id as SessionId);
  }
}

/** The last event of a session's stream. */
export function closedEvent({ id }: ActorId, closedBy?: string): Envelope<'session.closed'> {
  const data = { reason: 'closed', ...(closedBy === undefined ? {} : { closedBy }) } as const;
  return { type: 'session.closed', sessionId: id, data };
}

function keyOf({ workspaceId, id }: ActorId): string {
  return `${workspaceId}/${id}`;
}
