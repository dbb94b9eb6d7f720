import type { Client } from '#src/contract/client/client.ts';
import { openNotebookPage } from '#src/contract/client/notebook-page.ts';
import { BASE_URL } from '../state/server.ts';

/** Goes to the page of a notebook, and opens a session on it first if there is none. Rejects with `ApiError`. */
export async function openNotebook(client: Client, notebookId: string): Promise<void> {
  const { url } = await openNotebookPage(client, notebookId);
  location.assign(BASE_URL + url);
}
