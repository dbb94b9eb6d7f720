import { inSlices } from '#src/base/async/slices.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { SessionStream } from '#src/runtime/events/session-stream.ts';
import { LiveSessions, type OwnsSession, type StreamMaker } from '#src/runtime/sessions/live-sessions.ts';
import { conversationRecords, entryRecords } from '#storage/records/conversations.ts';
import type { Store } from '#storage/store.ts';
import { type StoredEntry, storedEntryOf } from './entry.ts';
import { LiveConversation, type OutcomeOf } from './live-conversation.ts';
import { streamedEntry } from './streamed-entries.ts';

export interface LiveConversationsOptions {
  readonly store: Store;
  readonly makeStream: StreamMaker;
  readonly owns?: OwnsSession;
  /** Whether a prompt runs in the conversation, which then stays in memory. */
  readonly isBusy: (session: ActorId) => boolean;
  readonly outcomeOf: OutcomeOf;
}

/** How many bytes of entries are parsed in one step. */
const STEP_BYTES = 64 * 1024;
/** How long a prepared conversation stays in memory for the requests that needed its preparation. */
const PREPARED_MS = 1000;

/** The conversations in memory: those that have followers or a running prompt. */
export class LiveConversations extends LiveSessions<LiveConversation> {
  readonly #options: LiveConversationsOptions;
  /** The entries read so far of the conversation that is being loaded, and whether it stays in memory for a while. */
  #read: { readonly entries: readonly StoredEntry[]; readonly isHeld: boolean } | undefined;

  constructor(options: LiveConversationsOptions) {
    super(options.makeStream, options.owns);
    this.#options = options;
  }

  /**
   * Loads a conversation that is not in memory. A long one is read in slices, and stays in memory for a second after the promise
   * has resolved. Returns undefined when no loading is needed.
   */
  prepare(session: ActorId): Promise<void> | undefined {
    if (this.peek(session) !== undefined) return undefined;
    const entries: StoredEntry[] = [];
    if (!this.#readNext(session, entries))
      return inSlices(this.#readAll(session, entries), session.workspaceId).then(() =>
        this.#loadLong(session, entries),
      );
    if (entries.length > 0) this.#loadRead(session, entries, false);
    return undefined;
  }

  *#readAll(session: ActorId, entries: StoredEntry[]): Generator<undefined, void> {
    let measured = 0;
    for (let isOver = false; ; isOver = this.#readNext(session, entries)) {
      yield;
      // Otherwise all long entries would be measured in the turn in which the first follower's stream begins.
      for (const { entry } of entries.slice(measured)) {
        streamedEntry(entry);
        yield;
      }
      measured = entries.length;
      if (isOver) return;
    }
  }

  /** Adds the next entries. Returns whether these are the last entries. */
  #readNext({ workspaceId, id }: ActorId, entries: StoredEntry[]): boolean {
    const after = entries.at(-1)?.entry.id;
    const page = { limit: Number.POSITIVE_INFINITY, ...(after === undefined ? {} : { after }) };
    let bytes = 0;
    for (const { value } of this.#options.store.list(entryRecords, workspaceId, [id], page)) {
      entries.push(storedEntryOf(value));
      bytes += value.document.byteLength;
      if (bytes > STEP_BYTES) return false;
    }
    return true;
  }

  /** Loads the entries read, unless the conversation was loaded, continued or deleted meanwhile. */
  #loadLong(session: ActorId, entries: readonly StoredEntry[]): void {
    const { store } = this.#options;
    const { workspaceId, id } = session;
    const last = entries.at(-1)?.entry.id;
    const [newest] = store.list(entryRecords, workspaceId, [id], { limit: 1, reverse: true });
    const isCurrent = newest?.id === last;
    const exists = store.get(conversationRecords, workspaceId, id) !== undefined;
    if (exists && isCurrent && this.peek(session) === undefined) this.#loadRead(session, entries, true);
  }

  #loadRead(session: ActorId, entries: readonly StoredEntry[], isHeld: boolean): void {
    this.#read = { entries, isHeld };
    try {
      this.of(session);
    } finally {
      this.#read = undefined; // otherwise the next conversation would get these entries
    }
  }

  /**
   * Removes a conversation without followers and without work from memory, once all of it is on disk. The last events of its prompts
   * are kept for a while, for a client that was cut off just before the end of an answer.
   */
  release(session: ActorId): void {
    const live = this.peek(session);
    const { store, isBusy } = this.#options;
    if (live === undefined || live.stream.userCount > 0 || isBusy(session)) return;
    const durable = store.durable();
    // Loading reads a range, which does not see uncommitted records, so the conversation must be committed first.
    if (durable === undefined) this.rest(session);
    else
      unawaited(
        durable.then(() => this.release(session)).catch(() => {}),
        'live-conversations: the release of a conversation',
      ); // the store reports a failed commit
  }

  protected override load(session: ActorId, stream: SessionStream): LiveConversation {
    return this.#make(session, stream, this.#read?.entries);
  }

  /**
   * A closed conversation can be read. Its entries are passed on in memory, because the last entries may not
   * be committed yet.
   */
  protected override succeed(closed: LiveConversation, newStream: () => SessionStream): LiveConversation {
    const { workspaceId, sessionId } = closed;
    return this.#make({ workspaceId, id: sessionId }, newStream(), closed.entries);
  }

  #make(session: ActorId, stream: SessionStream, entries?: readonly StoredEntry[]): LiveConversation {
    const { store, outcomeOf } = this.#options;
    const known = entries === undefined ? {} : { entries };
    const onUnused = () => this.release(session);
    // A caller that only reads the conversation does not keep it in memory.
    if (this.#read?.isHeld === true) setTimeout(onUnused, PREPARED_MS).unref();
    else setImmediate(onUnused);
    return new LiveConversation({ store, session, stream, onUnused, outcomeOf, ...known });
  }
}
