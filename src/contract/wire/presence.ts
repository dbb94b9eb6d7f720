/** The messages of a notebook's page about the people and the agent in it. The page of this server reads them; the API has none of it. */
import type { AgentStatus } from './agent.ts';
import type { BrowserPage, SessionStatus } from './session.ts';

/** The first message: the notebook, and the reader's place in it. */
export interface NotebookPlace {
  readonly workspaceId: string;
  readonly userId: string;
  readonly access: BrowserPage['access'];
}

export interface PresentPerson {
  readonly userId: string;
  /** The name of the member; the id of a user without one. */
  readonly name: string;
  /** The highest access of the person's pages. */
  readonly access: BrowserPage['access'];
}

/** The conversation of the notebook, if it is open. */
export interface PresentAgent {
  readonly ownerId: string;
  readonly ownerName: string;
  readonly status: AgentStatus;
}

export interface ChangedCell {
  readonly cellId: string;
  /** The name of the cell, or the beginning of its code. */
  readonly label: string;
  readonly isDeleted: boolean;
}

/** The last changes of one author. */
export interface AuthorChanges {
  readonly userId: string;
  readonly name: string;
  /** Whether the agent changed the cells on a prompt of this user. */
  readonly isAgent: boolean;
  /** RFC 3339. */
  readonly at: string;
  /** The cells, the last changed one first. */
  readonly cells: readonly ChangedCell[];
}

/** Every later message: the whole present state. */
export interface NotebookPresence {
  readonly title: string | null;
  readonly status: SessionStatus;
  /** Why the last kernel has ended, as a sentence, until a cell runs in the present one. */
  readonly kernelEnd: string | null;
  readonly people: readonly PresentPerson[];
  /** How many people are here in addition. */
  readonly morePeople: number;
  readonly agent: PresentAgent | null;
  /** The last author first. */
  readonly changes: readonly AuthorChanges[];
}
