import type { WorkspaceId } from '#src/base/ids.ts';
import type { NotebookUrl } from '#src/base/json/notebook-url.ts';
import type { PresentAgent } from '#src/contract/wire/presence.ts';
import type { LimitsOfWorkspaces } from '#src/people/auth/workspace-limits.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { ElementFiles } from '#src/workspace/files/element-files.ts';
import type { WorkspacePackages } from '#src/workspace/packages/workspace-packages.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { LiveNotebooks } from '../open/live-notebooks.ts';
import type { NotebookSecrets } from '../saved/notebook-secrets.ts';
import type { SavedNotebooks } from '../saved/saved-notebooks.ts';
import type { NotebookSessionPlaces } from './notebook-session-places.ts';
import type { SessionEnds } from './session-ends.ts';

/** The notebooks of this process, saved and in use, with the parts that their sessions use. */
export interface NotebookContext extends RunPlaneContext {
  readonly notebooks: SavedNotebooks;
  readonly secrets: NotebookSecrets;
  readonly urlOf: NotebookUrl;
  readonly liveNotebooks: LiveNotebooks;
  readonly places: NotebookSessionPlaces;
  readonly ends: SessionEnds;
  /** The packages that all notebooks of a workspace have. */
  readonly packages: WorkspacePackages;
  /** The files that pages send to elements of a session, such as `mo.ui.file`. */
  readonly elementFiles: ElementFiles;
  readonly limits: LimitsOfWorkspaces;
  /** Returns the agents, which are opened after the notebooks. */
  readonly agents: () => NotebookAgents;
}

/** The agents of notebooks. A notebook has at most one conversation. */
export interface NotebookAgents {
  /** Returns the open conversation of a notebook; null when there is none. */
  ofNotebook(workspaceId: WorkspaceId, notebookId: string): Omit<PresentAgent, 'ownerName'> | null;
  /** Calls `changed` when the conversation of a notebook opens, closes, begins or ends its work. Returns a function that removes the listener. */
  watchNotebook(workspaceId: WorkspaceId, notebookId: string, changed: () => void): () => void;
  /** Closes the conversation that is bound to a session, in the name of the user `by`, in the turn in which the session begins to close. Idempotent. */
  closeBound(workspaceId: WorkspaceId, sessionId: string, by: string | undefined): void;
  /** Closes the conversation of a notebook and returns the function that deletes it, to be called in the same turn. */
  prepareDeletion(workspaceId: WorkspaceId, notebookId: string): (tx: Transaction) => void;
}
