import type { SessionId, WorkspaceId } from '#src/core/ids.ts';
import type { SessionStream } from '#src/events/session-stream.ts';
import type { Store } from '#storage/store.ts';
import type { KeptEntry } from './entry.ts';
import { LiveConversation } from './live-conversation.ts';

export interface LiveConversationsOptions {
  readonly store: Store;
  readonly makeStream: (sessionId: SessionId) => SessionStream;
  /** Whether a prompt runs in it: it then stays in memory. */
  readonly isBusy: (workspaceId: WorkspaceId, sessionId: SessionId) => boolean;
}

/** The conversations in memory: those that somebody follows or in which a prompt runs. */
export class LiveConversations {
  readonly #options: LiveConversationsOptions;
  readonly #live = new Map<string, LiveConversation>();

  constructor(options: LiveConversationsOptions) {
    this.#options = options;
  }

  /** The conversation of a session, from memory or from what is saved. */
  of(workspaceId: WorkspaceId, sessionId: SessionId): LiveConversation {
    const known = this.peek(workspaceId, sessionId);
    if (known !== undefined) return known;
    return this.#make(workspaceId, sessionId);
  }

  peek(workspaceId: WorkspaceId, sessionId: string): LiveConversation | undefined {
    return this.#live.get(keyOf(workspaceId, sessionId));
  }

  /** Lets a conversation go that nobody follows and in which nothing runs, once all of it is on disk. */
  settle(workspaceId: WorkspaceId, sessionId: SessionId): void {
    const live = this.peek(workspaceId, sessionId);
    const { store, isBusy } = this.#options;
    if (live === undefined || live.stream.subscriberCount > 0 || isBusy(workspaceId, sessionId)) return;
    const durable = store.durable();
    // A range does not see what is not committed yet, and this is made again from a range.
    if (durable === undefined) this.#live.delete(keyOf(workspaceId, sessionId));
    else void durable.then(() => this.settle(workspaceId, sessionId)).catch(() => {}); // told by the store
  }

  /** The session was closed: its stream is over, what it said may not be committed yet. */
  retire(workspaceId: WorkspaceId, sessionId: SessionId): void {
    const live = this.peek(workspaceId, sessionId);
    if (live !== undefined) this.#make(workspaceId, sessionId, live.entries);
  }

  /** A stream that belongs to no conversation in memory, for a subscriber of a closed session. */
  strayStream(sessionId: SessionId): SessionStream {
    return this.#options.makeStream(sessionId);
  }

  #make(workspaceId: WorkspaceId, sessionId: SessionId, entries?: readonly KeptEntry[]): LiveConversation {
    const { store, makeStream } = this.#options;
    const stream = makeStream(sessionId);
    const known = entries === undefined ? {} : { entries };
    const live = new LiveConversation({ store, workspaceId, sessionId, stream, ...known });
    this.#live.set(keyOf(workspaceId, sessionId), live);
    stream.onEmpty(() => this.settle(workspaceId, sessionId));
    // Whoever only looked at it leaves nothing behind.
    setImmediate(() => this.settle(workspaceId, sessionId));
    return live;
  }

  all(): Iterable<LiveConversation> {
    return this.#live.values();
  }
}

function keyOf(workspaceId: string, sessionId: string): string {
  return `${workspaceId}/${sessionId}`;
}
