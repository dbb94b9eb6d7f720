/**
 * Opens and closes notebooks through the API. A tool works on an open notebook; if the notebook is
 * not open, the tool opens it first.
 */

import { AppError } from '#src/base/errors/errors.ts';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { NotebookSession } from '#src/contract/wire/session.ts';
import type { McpCall } from './mcp-call.ts';

interface SessionCall extends Pick<McpCall, 'client' | 'signal' | 'report'> {
  /**
   * Returns whether the call must stop waiting for other work on the notebook. When this is absent, it waits until
   * its signal aborts.
   */
  readonly isWaitOver?: () => boolean;
}

/** The first and the longest pause before a busy or starting session is asked again. */
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 500;

/**
 * Opens the notebook in an environment of its own, unless it is open, and resolves once its kernel is ready or at
 * work. Rejects with the refusal of the server, and with `session_failed` when the kernel does not start. Whenever it
 * rejects, even because the signal aborts, it closes the session and the environment that it has opened.
 */
export async function openSession(
  { client, signal, report }: SessionCall,
  notebookId: string,
): Promise<NotebookSession> {
  // The signal does not end requests that open something, because their answers have the ids that are needed for
  // closing.
  signal.throwIfAborted();
  const { environmentId } = await client.executionEnvironments.create();
  let hasOpened = false;
  try {
    signal.throwIfAborted();
    await client.notebookSessions.open({ notebookId, environmentId });
    hasOpened = true;
  } catch (error) {
    await client.executionEnvironments.close(environmentId).catch(() => {});
    if (!isRefusal(error, 'session_exists')) throw error;
  }
  try {
    const session = await client.notebookSessions.waitUntilReady(notebookId, {
      signal,
      orBusy: true,
      startup: ({ text }) => report(text),
    });
    signal.throwIfAborted();
    if (session.status !== 'failed') return session;
    throw new AppError(
      'session_failed',
      session.error?.message ?? 'The kernel of the notebook did not start.',
    );
  } catch (error) {
    if (hasOpened) await closeSession({ client, signal: undefined }, notebookId).catch(() => {});
    throw error;
  }
}

/** Closes the notebook and its environment, unless conversations are open in the environment. */
export async function closeSession(
  { client, signal }: Pick<SessionCall, 'client'> & { readonly signal: AbortSignal | undefined },
  notebookId: string,
): Promise<NotebookSession> {
  const closed = await client.notebookSessions.close(notebookId, { signal });
  if (closed.environmentId !== null) {
    await client.executionEnvironments.close(closed.environmentId, { signal }).catch((error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
    });
  }
  return closed;
}

/**
 * Carries out a request for the session of a notebook. When the notebook is not open, it is opened first; while its kernel starts or does
 * other work, the request is made again until the signal aborts.
 */
export async function inOpenSession<T>(
  call: SessionCall,
  notebookId: string,
  request: () => Promise<T>,
): Promise<T> {
  let hasOpened = false;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    try {
      return await request();
    } catch (error) {
      if (!hasOpened && (isRefusal(error, 'not_found') || isRefusal(error, 'session_closed'))) {
        hasOpened = true;
        await openSession(call, notebookId);
      } else if (isRefusal(error, 'session_busy') || isRefusal(error, 'session_not_ready')) {
        if (isRefusal(error, 'session_busy') && call.isWaitOver?.() === true) throw error;
        call.report('waiting for the notebook');
        await pause(pauseMs, call.signal);
      } else throw error;
    }
  }
}

function isRefusal(error: unknown, code: string): boolean {
  return error instanceof ApiError && error.code === code;
}

/** Resolves after `ms`. Rejects with the reason of the signal when it aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', leave);
      resolve();
    }, ms);
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
  });
}
