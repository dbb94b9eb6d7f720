import { cutText } from '#src/base/text/cut-text.ts';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import { Action } from '../parts/action.tsx';
import { MAX_TITLE_CHARACTERS } from './import-files.ts';

interface NotebookActionsProps {
  readonly client: Client;
  readonly item: { readonly id: string; readonly title: string | null; readonly updatedAt: string };
  /** Called once the list is out of date. */
  readonly changed: () => Promise<unknown>;
  /** Opens the dialog with the jobs of the notebook. */
  readonly schedule: () => void;
}

/** The actions on one notebook of the list: schedule, rename, duplicate, delete. */
export function NotebookActions({ client, item, changed, schedule }: NotebookActionsProps) {
  const { id, updatedAt } = item;
  const title = item.title ?? 'Untitled';
  /**
   * Makes a change that is refused while a session is open. After a refusal the person is asked, the session is closed, and
   * `again` makes the change.
   */
  const whileClosed = async (change: () => Promise<unknown>, again: () => Promise<unknown>) => {
    try {
      await change();
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'session_open') throw error;
      if (
        !confirm(
          `${title} is open. Its session has to be closed first, which ends what runs in it. Close it?`,
        )
      )
        return;
      await client.notebookSessions.close(id);
      await again();
    }
  };
  const rename = async () => {
    const wanted = prompt('The title of the notebook', item.title ?? '')?.trim();
    if (wanted === undefined || wanted === '' || wanted === item.title) return;
    const renamed = (expectedUpdatedAt: string) =>
      client.notebooks.update(id, { title: cutText(wanted, 0, MAX_TITLE_CHARACTERS), expectedUpdatedAt });
    await whileClosed(
      () => renamed(updatedAt),
      async () => renamed((await client.notebooks.get(id)).updatedAt), // the session may have saved the notebook
    );
    await changed();
  };
  const duplicate = async () => {
    const { bytes } = await client.notebooks.export(id, 'py');
    const content = new TextDecoder().decode(bytes);
    const copy = cutText(`Copy of ${title}`, 0, MAX_TITLE_CHARACTERS);
    await client.notebooks.import({ format: 'py', content, title: copy, settingsFrom: id });
    await changed();
  };
  const remove = async () => {
    const deleted = () => client.notebooks.delete(id);
    await whileClosed(deleted, deleted);
    await changed();
  };
  return (
    <details>
      <summary aria-label={`Actions on ${title}`} title="Schedule, rename, duplicate, delete">
        ⋯
      </summary>
      <button type="button" aria-haspopup="dialog" onClick={schedule}>
        Schedule
      </button>
      <Action label="Rename" run={rename} />
      <Action label="Duplicate" run={duplicate} />
      <Action
        label="Delete"
        isDanger
        confirm={`${title} is deleted with its versions. This cannot be undone.`}
        run={remove}
      />
    </details>
  );
}
