import type { SessionId, WorkspaceId } from '#src/core/ids.ts';
import type { SessionStream } from '#src/events/session-stream.ts';
import { cellOutputRecords } from '#storage/notebooks.ts';
import type { Store } from '#storage/store.ts';
import { LiveNotebook } from './live-notebook.ts';
import type { SavedNotebooks } from './saved-notebooks.ts';

export interface LiveNotebooksOptions {
  readonly store: Store;
  readonly notebooks: SavedNotebooks;
  readonly makeStream: (sessionId: SessionId) => SessionStream;
}

/** The open notebooks in memory, one for each session that is not closed and was used since the server started. */
export class LiveNotebooks {
  readonly #options: LiveNotebooksOptions;
  readonly #live = new Map<string, LiveNotebook>();

  constructor(options: LiveNotebooksOptions) {
    this.#options = options;
  }

  /** The open notebook of a session that is not closed; made from what is saved when it is not in memory yet. */
  of(workspaceId: WorkspaceId, sessionId: string): LiveNotebook {
    const known = this.peek(workspaceId, sessionId);
    if (known !== undefined) return known;
    const { store, notebooks, makeStream } = this.#options;
    const live = new LiveNotebook({
      workspaceId,
      sessionId: sessionId as SessionId,
      document: notebooks.read(workspaceId, sessionId),
      outputs: savedOutputs(store, workspaceId, sessionId),
      stream: makeStream(sessionId as SessionId),
      save: (document) => notebooks.save(workspaceId, document),
      committed: () => store.durable(),
    });
    this.#live.set(keyOf(workspaceId, sessionId), live);
    return live;
  }

  peek(workspaceId: WorkspaceId, sessionId: string): LiveNotebook | undefined {
    return this.#live.get(keyOf(workspaceId, sessionId));
  }

  /** A stream that belongs to no open notebook, for a subscriber of a closed session. */
  strayStream(sessionId: string): SessionStream {
    return this.#options.makeStream(sessionId as SessionId);
  }

  forget(workspaceId: WorkspaceId, sessionId: string): void {
    this.#live.delete(keyOf(workspaceId, sessionId));
  }

  all(): Iterable<LiveNotebook> {
    return this.#live.values();
  }
}

function savedOutputs(store: Store, workspaceId: WorkspaceId, notebookId: string) {
  const saved = store.list(cellOutputRecords, workspaceId, [notebookId], { limit: Number.POSITIVE_INFINITY });
  return new Map([...saved].map(({ id, value }) => [id, value] as const));
}

function keyOf(workspaceId: string, sessionId: string): string {
  return `${workspaceId}/${sessionId}`;
}
