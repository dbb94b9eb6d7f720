import type { ActorId } from '#src/actors/address.ts';
import type { SessionId } from '#src/core/ids.ts';
import type { SessionStream } from '#src/events/session-stream.ts';
import { LiveSessions, type StreamMaker } from '#src/sessions/live-sessions.ts';
import type { Store } from '#storage/store.ts';
import type { StoredEntry } from './entry.ts';
import { LiveConversation } from './live-conversation.ts';

export interface LiveConversationsOptions {
  readonly store: Store;
  readonly makeStream: StreamMaker;
  /** Whether a prompt runs in the conversation, which then stays in memory. */
  readonly isBusy: (session: ActorId) => boolean;
}

/** The conversations in memory: those that somebody follows or in which a prompt runs. */
export class LiveConversations extends LiveSessions<LiveConversation> {
  readonly #options: LiveConversationsOptions;

  constructor(options: LiveConversationsOptions) {
    super(options.makeStream);
    this.#options = options;
  }

  /** Lets a conversation leave memory that nobody follows and in which nothing runs, once all of it is on disk. */
  release(session: ActorId): void {
    const live = this.peek(session);
    const { store, isBusy } = this.#options;
    if (live === undefined || live.stream.userCount > 0 || isBusy(session)) return;
    const durable = store.durable();
    // A range does not see what is not committed yet, and the conversation is loaded again from a range.
    if (durable === undefined) this.forget(session);
    else void durable.then(() => this.release(session)).catch(() => {}); // the store reports a failed commit
  }

  protected override load(session: ActorId, stream: SessionStream): LiveConversation {
    return this.#make(session, stream);
  }

  /** A closed conversation can be read. Its entries are handed on: the last ones may not be committed yet. */
  protected override succeed(closed: LiveConversation, newStream: () => SessionStream): LiveConversation {
    const { workspaceId, sessionId } = closed;
    return this.#make({ workspaceId, id: sessionId }, newStream(), closed.entries);
  }

  #make(session: ActorId, stream: SessionStream, entries?: readonly StoredEntry[]): LiveConversation {
    const { store } = this.#options;
    const { workspaceId } = session;
    const sessionId = session.id as SessionId;
    const known = entries === undefined ? {} : { entries };
    // A caller that only looks at the conversation leaves nothing in memory.
    setImmediate(() => this.release(session));
    const onUnused = () => this.release(session);
    return new LiveConversation({ store, workspaceId, sessionId, stream, onUnused, ...known });
  }
}
