/** The session that a command uses: the open session of the notebook, or a new one in a new environment. */
import { isDeepStrictEqual } from 'node:util';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { NotebookSession, Startup } from '#src/contract/wire/session.ts';
import { CommandFailure } from '../exit-code.ts';
import type { Interruption } from './interruption.ts';
import type { ServerReturn } from './server-return.ts';

/** A ready session. */
export interface CommandSession {
  readonly session: NotebookSession;
  /** Whether this command opened the session, and therefore closes it. */
  readonly isNew: boolean;
  /** Closes the session and its environment if they are new and still open. */
  close(signal: AbortSignal): Promise<void>;
}

/**
 * How many seconds after its last use a session for one run ends by itself. The run and every follower count as uses.
 */
const ENDS_AFTER_S = 20;

/** The metadata of a session that is open for one run only, and closed at the end of that run. */
const FOR_ONE_RUN = { 'opened-by': 'troupe run' };

/** The notebook has an open session that the command cannot use. */
export class SessionTaken extends CommandFailure {
  readonly why: string;
  constructor(notebookId: string, why: string) {
    super(`${why}: close it first (troupe sessions close ${notebookId}).`);
    this.name = 'SessionTaken';
    this.why = why;
  }
}

/** The notebook to open. */
export interface LiveSessionOptions {
  readonly client: Client;
  readonly notebookId: string;
  /** Whether an open session must not be used. */
  readonly isExclusive: boolean;
  /** Whether the session stays open after the command. */
  readonly keep: boolean;
  /** Command-line arguments of the notebook; undefined: those of the open session. */
  readonly arguments: readonly string[] | undefined;
  readonly interruption: Interruption;
  readonly server: ServerReturn;
  /** Called with each step of the kernel's start. */
  readonly waitsFor: (text: string) => void;
}

/**
 * Resolves with the session when it is ready. If the kernel cannot start, closes everything and rejects. Rejects with
 * `SessionTaken` when the notebook has a session that cannot be used.
 */
export async function openLiveSession(options: LiveSessionOptions): Promise<CommandSession> {
  const { client, notebookId, arguments: words, interruption, server } = options;
  const waiting = { signal: interruption.stop, startup: ({ text }: Startup) => options.waitsFor(text) };
  const present = await openSessionOf(client, notebookId, interruption.stop);
  if (present !== undefined) {
    const why = options.isExclusive ? 'A session is open on the notebook' : whyUnusable(present, words);
    if (why !== undefined) throw new SessionTaken(notebookId, why);
    const session = await client.notebookSessions.waitUntilReady(notebookId, waiting);
    return { session: usable(session), isNew: false, close: async () => {} };
  }
  const { environmentId } = await client.executionEnvironments.create({ signal: interruption.leave });
  let isOpen = false;
  const close = async (signal: AbortSignal) => {
    const attempt = (request: () => Promise<unknown>) =>
      server.attempt(() => unlessClosed(request()), signal);
    if (isOpen) {
      await attempt(async () => {
        // The session may have ended by itself, and another command may have opened a new one. Reading the list wakes nothing.
        const { items } = await client.notebookSessions.list({ notebookId, signal });
        const isOurs = items[0]?.environmentId === environmentId;
        if (isOurs) await client.notebookSessions.close(notebookId, { signal });
      });
    }
    await attempt(() => client.executionEnvironments.close(environmentId, { signal }));
  };
  try {
    const forOneRun = options.keep ? {} : { metadata: FOR_ONE_RUN, idleTimeoutS: ENDS_AFTER_S };
    await client.notebookSessions.open(
      { notebookId, environmentId, arguments: words ?? [], ...forOneRun },
      { signal: interruption.leave },
    );
    isOpen = true;
    const session = await server.through(() => client.notebookSessions.waitUntilReady(notebookId, waiting));
    return { session: usable(session), isNew: true, close };
  } catch (error) {
    if (!interruption.leave.aborted) await close(interruption.leave);
    if (error instanceof ApiError && error.code === 'session_exists')
      throw new SessionTaken(notebookId, 'Another command has opened a session on the notebook');
    throw error;
  }
}

/** Resolves when the request has succeeded, or has failed because the session or environment was already closed. */
async function unlessClosed(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    const isClosed =
      error instanceof ApiError && ['session_closed', 'environment_closed'].includes(error.code);
    if (!isClosed) throw error;
  }
}

/** Returns, as sentences, the differences between a session's kernel and its notebook's requirements. */
export function notesOf({ kernel }: Pick<NotebookSession, 'kernel'>): readonly string[] {
  const notes = kernel?.notes;
  return Array.isArray(notes) ? notes.map(String) : [];
}

/** Returns why a run with these arguments cannot use an open session; undefined when it can. */
export function whyUnusable(
  { arguments: present, metadata = {} }: NotebookSession,
  words: readonly string[] | undefined,
): string | undefined {
  if (words !== undefined && !isDeepStrictEqual(words, present))
    return 'A session with other arguments is open on the notebook';
  const isForOneRun = Object.entries(FOR_ONE_RUN).every(([key, value]) => metadata[key] === value);
  return isForOneRun ? 'Another run has opened a session on the notebook' : undefined;
}

/** Returns the open session of a notebook; undefined when there is none. */
export async function openSessionOf(
  client: Client,
  notebookId: string,
  signal: AbortSignal,
): Promise<NotebookSession | undefined> {
  try {
    const session = await client.notebookSessions.get(notebookId, { signal });
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
