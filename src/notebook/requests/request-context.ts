import type { NotebookContext } from '../sessions/notebook-context.ts';
import type { NotebookSessionActors } from '../sessions/notebook-session-actors.ts';
import type { NotebookSessions } from '../sessions/notebook-sessions.ts';
import type { SessionWork } from '../work/session-work.ts';

/** The notebooks of this process with their opened sessions, as requests reach them. */
export interface NotebookRequestContext extends NotebookContext {
  readonly actors: NotebookSessionActors;
  readonly sessions: NotebookSessions;
  readonly work: SessionWork;
}
