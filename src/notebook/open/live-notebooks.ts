import { atOnce, inSlices } from '#src/base/async/slices.ts';
import { continueAfter } from '#src/base/ids.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { SessionStream } from '#src/runtime/events/session-stream.ts';
import { LiveSessions, type OwnsSession, type StreamMaker } from '#src/runtime/sessions/live-sessions.ts';
import { sessionRuns } from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';
import type { SavedNotebooks } from '../saved/saved-notebooks.ts';
import { readOutputs } from '../saved/saved-outputs.ts';
import { LiveNotebook } from './live-notebook.ts';
import { type SavedState, savedView } from './saved-view.ts';
import type { NotebookView } from './view.ts';

export interface LiveNotebooksOptions {
  readonly store: Store;
  readonly notebooks: SavedNotebooks;
  readonly makeStream: StreamMaker;
  readonly owns?: OwnsSession;
  /** Called when a session comes into memory. */
  readonly onLoad?: (session: ActorId) => void;
}

interface ReadOutputs {
  readonly session: ActorId;
  /** The outputs; undefined while they are read. */
  outputs: SavedState['outputs'] | undefined;
}

/** Long enough for a decision that has to wait for its turn among several workers. */
const PREPARED_MS = 1000;

/** The open notebooks in memory: one for each session that is not closed and was used since the server started. */
export class LiveNotebooks extends LiveSessions<LiveNotebook> {
  readonly #store: Store;
  readonly #notebooks: SavedNotebooks;
  readonly #onLoad: (session: ActorId) => void;
  /** Outputs of notebooks that are about to be loaded. */
  readonly #read = new Map<string, ReadOutputs>();

  constructor({ store, notebooks, makeStream, owns, onLoad = () => {} }: LiveNotebooksOptions) {
    super(makeStream, owns);
    this.#store = store;
    this.#notebooks = notebooks;
    this.#onLoad = onLoad;
  }

  /**
   * Reads the outputs of a notebook that is not in memory in slices, if they are many or large, so that `of` has them for a second
   * after the promise has resolved. Returns undefined when there is nothing to wait for.
   */
  prepareOutputs(session: ActorId): Promise<void> | undefined {
    if (this.peek(session) !== undefined) return undefined;
    const reading = readOutputs(this.#store, session.workspaceId, session.id);
    if (reading.next().done === true) return undefined;
    const key = keyOf(session);
    const read: ReadOutputs = { session, outputs: undefined };
    this.#read.set(key, read);
    const forget = () => {
      if (this.#read.get(key) === read) this.#read.delete(key);
    };
    const keep = (outputs: SavedState['outputs']) => {
      read.outputs = outputs;
      setTimeout(forget, PREPARED_MS).unref();
    };
    return inSlices(reading, session.workspaceId).then(keep, forget);
  }

  override leaveTo(isElsewhere: (workspaceId: string, id: string) => boolean): void {
    super.leaveTo(isElsewhere);
    for (const [key, { session }] of this.#read)
      if (isElsewhere(session.workspaceId, session.id)) this.#read.delete(key);
  }

  protected override load({ workspaceId, id }: ActorId, stream: SessionStream): LiveNotebook {
    const saved = this.#saved({ workspaceId, id });
    // The view can change from now on.
    this.#read.delete(keyOf({ workspaceId, id }));
    this.#onLoad({ workspaceId, id });
    // Runs are in the order of their ids, also after the clock was set back between two processes.
    const newestFirst = { limit: 1, reverse: true };
    for (const run of this.#store.list(sessionRuns, workspaceId, [id], newestFirst)) continueAfter(run.id);
    return new LiveNotebook({
      session: { workspaceId, id },
      saved,
      stream,
      notebooks: this.#notebooks,
      store: this.#store,
    });
  }

  /** Returns the view of a session, and loads nothing. */
  viewOf(session: ActorId): NotebookView {
    return this.peek(session)?.view ?? savedView(this.#saved(session));
  }

  #saved({ workspaceId, id }: ActorId): SavedState {
    return {
      document: this.#notebooks.read(workspaceId, id),
      outputs:
        this.#read.get(keyOf({ workspaceId, id }))?.outputs ??
        atOnce(readOutputs(this.#store, workspaceId, id)),
    };
  }
}

function keyOf({ workspaceId, id }: ActorId): string {
  return `${workspaceId}/${id}`;
}
