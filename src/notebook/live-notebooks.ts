import type { ActorId } from '#src/actors/address.ts';
import type { SessionId } from '#src/core/ids.ts';
import type { SessionStream } from '#src/events/session-stream.ts';
import { LiveSessions, type StreamMaker } from '#src/sessions/live-sessions.ts';
import type { Store } from '#storage/store.ts';
import { LiveNotebook } from './live-notebook.ts';
import type { SavedNotebooks } from './saved-notebooks.ts';
import { allOutputsOf } from './saved-outputs.ts';
import { type SavedState, savedView } from './saved-view.ts';
import type { NotebookView } from './view.ts';

export interface LiveNotebooksOptions {
  readonly store: Store;
  readonly notebooks: SavedNotebooks;
  readonly makeStream: StreamMaker;
}

/** The open notebooks in memory: one for each session that is not closed and was used since the server started. */
export class LiveNotebooks extends LiveSessions<LiveNotebook> {
  readonly #store: Store;
  readonly #notebooks: SavedNotebooks;

  constructor({ store, notebooks, makeStream }: LiveNotebooksOptions) {
    super(makeStream);
    this.#store = store;
    this.#notebooks = notebooks;
  }

  protected override load({ workspaceId, id }: ActorId, stream: SessionStream): LiveNotebook {
    return new LiveNotebook({
      workspaceId,
      sessionId: id as SessionId,
      saved: this.#saved({ workspaceId, id }),
      stream,
      save: (document) => this.#notebooks.save(workspaceId, document),
      committed: () => this.#store.durable(),
    });
  }

  /** Returns what a session shows, and loads nothing. */
  viewOf(session: ActorId): NotebookView {
    return this.peek(session)?.view ?? savedView(this.#saved(session));
  }

  #saved({ workspaceId, id }: ActorId): SavedState {
    return {
      document: this.#notebooks.read(workspaceId, id),
      outputs: allOutputsOf(this.#store, workspaceId, id),
    };
  }
}
