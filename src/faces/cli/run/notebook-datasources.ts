/** The datasources of a notebook that is to be run. */
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import { CommandFailure } from '../exit-code.ts';

/** Throws `CommandFailure` for a slug whose datasource the caller cannot read. */
export async function checkDatasources(client: Client, slugs: readonly string[]): Promise<void> {
  for (const slug of slugs)
    try {
      await client.datasources.get(slug);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) throw error;
      throw new CommandFailure(
        `There is no datasource ${slug} that you may read: troupe datasources list shows your datasources.`,
      );
    }
}

/**
 * Resolves with the notebook once it may use these datasources. Rejects with `session_open` when the notebook must be changed for
 * that and a session is open.
 */
export async function withDatasources(
  client: Client,
  notebook: Notebook,
  slugs: readonly string[],
): Promise<Notebook> {
  const all = [...new Set([...notebook.datasourceSlugs, ...slugs])];
  if (all.length === notebook.datasourceSlugs.length) return notebook;
  const { updatedAt: expectedUpdatedAt } = notebook;
  return client.notebooks.update(notebook.id, { expectedUpdatedAt, datasourceSlugs: all });
}
