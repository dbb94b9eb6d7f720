import { openNotebookPage } from '#src/contract/client/notebook-page.ts';
import { useClient } from '../state/data.ts';
import { BASE_URL } from '../state/server.ts';
import { Action } from './action.tsx';

/** A button that opens the page of a notebook in a new tab, and a session on it first if there is none. */
export function OpenPageAction({ notebookId }: { readonly notebookId: string }) {
  const client = useClient();
  const open = async () => {
    // Browsers allow a new tab only during the click itself, not after the server has answered.
    const tab = window.open('about:blank', '_blank');
    if (tab === null)
      throw new Error('The browser refused a new tab. Allow this page to open tabs, and try again.');
    tab.opener = null; // the page gets no access to the console
    try {
      const { url } = await openNotebookPage(client, notebookId);
      tab.location.replace(BASE_URL + url);
    } catch (error) {
      tab.close();
      throw error;
    }
  };
  return <Action label="Open" run={open} />;
}
