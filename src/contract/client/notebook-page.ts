/** The page of a notebook in a browser, for callers that do not know whether the notebook has a session. */
import type { BrowserPage, OpenBrowserPage, OpenNotebookSession } from '../wire/session.ts';
import { ApiError } from './api-error.ts';
import type { ProgramCalls } from './client.ts';
import type { RequestOptions } from './connection.ts';

/** The calls that open a page. */
type PageCalls = Pick<ProgramCalls, 'executionEnvironments' | 'notebookSessions'>;

export interface NotebookPageOptions extends RequestOptions, OpenBrowserPage {
  /** The mode of the session if one has to be opened; a session that is open keeps its own. */
  readonly mode?: OpenNotebookSession['mode'];
}

/**
 * Returns a page on the live session of a notebook. If there is no session, opens one in a new environment first. Rejects with
 * `ApiError`.
 */
export async function openNotebookPage(
  client: PageCalls,
  notebookId: string,
  { mode, signal, ...body }: NotebookPageOptions = {},
): Promise<BrowserPage> {
  const askForPage = () => client.notebookSessions.page(notebookId, body, { signal });
  try {
    return await askForPage();
  } catch (error) {
    const isClosed =
      error instanceof ApiError && (error.code === 'not_found' || error.code === 'session_closed');
    if (!isClosed) throw error;
  }
  const { environmentId } = await client.executionEnvironments.create({ signal });
  try {
    await client.notebookSessions.open({ notebookId, environmentId, ...(mode && { mode }) }, { signal });
  } catch (error) {
    // Somebody else may have opened a session on the notebook at the same moment. The new environment is then
    // useless.
    await client.executionEnvironments.close(environmentId, { signal });
    if (!(error instanceof ApiError && error.code === 'session_exists')) throw error;
  }
  return askForPage();
}
