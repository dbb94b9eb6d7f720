import type { ActorId } from '#src/actors/address.ts';
import type { SessionId, WorkspaceId } from '#src/core/ids.ts';
import type { SessionStream } from '#src/events/session-stream.ts';
import type { Envelope } from '#src/wire/events.ts';

/** What is in memory of a session that is not closed, besides its actor. */
export interface LiveSession {
  readonly workspaceId: WorkspaceId;
  readonly sessionId: SessionId;
  readonly stream: SessionStream;
  /** Tells subscribers of a run's new status, once it is committed. */
  publishRunStatus(event: Envelope<'run-status'>, committed: Promise<void>): void;
}

export type StreamMaker = (sessionId: SessionId) => SessionStream;

/** The sessions of one kind that are in memory. One that is not is loaded from what is saved when it is used. */
export abstract class LiveSessions<Live extends LiveSession> {
  readonly #makeStream: StreamMaker;
  readonly #live = new Map<string, Live>();

  constructor(makeStream: StreamMaker) {
    this.#makeStream = makeStream;
  }

  /** Makes the session from what is saved of it. */
  protected abstract load(session: ActorId, stream: SessionStream): Live;

  /** Returns what takes the place of a session that closes: nothing. Its stream has ended. */
  protected succeed(_closed: Live, _newStream: () => SessionStream): Live | undefined {
    return undefined;
  }

  /** Returns a session that is not closed; loads it when it is not in memory. */
  of(session: ActorId): Live {
    const known = this.peek(session);
    if (known !== undefined) return known;
    const live = this.load(session, this.#streamOf(session));
    this.#live.set(keyOf(session), live);
    return live;
  }

  /** Returns a session if it is in memory. */
  peek(session: ActorId): Live | undefined {
    return this.#live.get(keyOf(session));
  }

  /** Takes a session out of memory. */
  forget(session: ActorId): void {
    this.#live.delete(keyOf(session));
  }

  /** Takes a session that closes out of memory and returns it, if it was there. */
  retire(session: ActorId): Live | undefined {
    const closed = this.peek(session);
    if (closed === undefined) return undefined;
    const successor = this.succeed(closed, () => this.#streamOf(session));
    if (successor === undefined) this.forget(session);
    else this.#live.set(keyOf(session), successor);
    return closed;
  }

  all(): Iterable<Live> {
    return this.#live.values();
  }

  #streamOf({ id }: ActorId): SessionStream {
    return this.#makeStream(id as SessionId);
  }
}

/** The last event of a session's stream. */
export function closedEvent({ id }: ActorId): Envelope<'session.closed'> {
  return { type: 'session.closed', sessionId: id, data: { reason: 'closed' } };
}

function keyOf({ workspaceId, id }: ActorId): string {
  return `${workspaceId}/${id}`;
}
