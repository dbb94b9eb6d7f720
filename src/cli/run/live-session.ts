/** The session that a command uses: the open session of the notebook, or a new one in an environment of its own. */
import { isDeepStrictEqual } from 'node:util';
import { ApiError } from '#src/client/api-error.ts';
import type { Client } from '#src/client/client.ts';
import type { NotebookSession, Startup } from '#src/wire/session.ts';
import { CommandFailure } from '../exit-code.ts';
import type { Interruption } from './interruption.ts';

/** A ready session. */
export interface LiveSession {
  readonly session: NotebookSession;
  /** Whether this command opened it, and therefore closes it. */
  readonly isNew: boolean;
  /** Closes the session and its environment if they are new. */
  close(signal: AbortSignal): Promise<void>;
}

/** The notebook to open. */
export interface LiveSessionOptions {
  readonly client: Client;
  readonly notebookId: string;
  /** Command-line arguments of the notebook; undefined takes those of the session that is open. */
  readonly arguments: readonly string[] | undefined;
  readonly interruption: Interruption;
  /** Called with the step for which the start of the kernel waits. */
  readonly waitsFor: (text: string) => void;
}

/** Returns the session when it is ready. Rejects, with nothing left open, when its kernel cannot start. */
export async function openLiveSession(options: LiveSessionOptions): Promise<LiveSession> {
  const { client, notebookId, arguments: words, interruption } = options;
  const waiting = { signal: interruption.stop, startup: ({ text }: Startup) => options.waitsFor(text) };
  const present = await findOpen(options);
  if (present !== undefined) {
    if (words !== undefined && !isDeepStrictEqual(words, present.arguments))
      throw new CommandFailure(
        `A session with other arguments is open on the notebook: close it first (troupe sessions close ${notebookId}).`,
      );
    const session = await client.notebookSessions.waitUntilReady(notebookId, waiting);
    return { session: usable(session), isNew: false, close: async () => {} };
  }
  const { environmentId } = await client.executionEnvironments.create({ signal: interruption.leave });
  let isOpen = false;
  const close = async (signal: AbortSignal) => {
    if (isOpen) await client.notebookSessions.close(notebookId, { signal });
    await client.executionEnvironments.close(environmentId, { signal });
  };
  try {
    await client.notebookSessions.open(
      { notebookId, environmentId, arguments: words ?? [] },
      { signal: interruption.leave },
    );
    isOpen = true;
    const session = await client.notebookSessions.waitUntilReady(notebookId, waiting);
    return { session: usable(session), isNew: true, close };
  } catch (error) {
    if (!interruption.leave.aborted) await close(interruption.leave);
    throw error;
  }
}

/** Returns the differences between the kernel of a session and the requirements of its notebook, as sentences. */
export function notesOf({ kernel }: Pick<NotebookSession, 'kernel'>): readonly string[] {
  const notes = kernel?.notes;
  return Array.isArray(notes) ? notes.map(String) : [];
}

async function findOpen({
  client,
  notebookId,
  interruption,
}: LiveSessionOptions): Promise<NotebookSession | undefined> {
  try {
    const session = await client.notebookSessions.get(notebookId, { signal: interruption.stop });
    return session.status === 'closed' || session.status === 'closing' ? undefined : session;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

function usable(session: NotebookSession): NotebookSession {
  const { status, error, sessionId } = session;
  if (status === 'ready' || status === 'busy') return session;
  const reason = error === null ? '' : `: ${error.message}`;
  throw new CommandFailure(`The session ${sessionId} is ${status}${reason}`);
}
