import { extname } from 'node:path';
import type { Command } from 'commander';
import type { Client } from '#src/contract/client/client.ts';
import type { NotebookSummary } from '#src/contract/wire/notebook.ts';
import type { CliContext } from '../command-group.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { idOfNotebook, syncContextOf } from './notebook-sync.ts';

/** The most ids that are listed when several notebooks have the same title. */
const MAX_NAMED = 5;

/** Returns the id of the notebook that an id, a title or a file names. A file without a notebook becomes one. Throws `CommandFailure`. */
export async function notebookNamed(
  client: Client,
  name: string,
  context: CliContext,
  command: Command,
): Promise<string> {
  const isTitle = !/^nb_\w+$/.test(name) && !/^\.(py|ipynb|md|markdown|qmd)$/i.test(extname(name));
  if (!isTitle) return idOfNotebook(syncContextOf(context, command), name, { pushes: true });
  const containing: NotebookSummary[] = [];
  const exact: NotebookSummary[] = [];
  for await (const notebook of client.notebooks.each({ title: name, order: 'desc', limit: 100 })) {
    if (notebook.title === name) exact.push(notebook);
    if (containing.length <= MAX_NAMED) containing.push(notebook);
    if (exact.length > MAX_NAMED) break;
  }
  const found = exact.length > 0 ? exact : containing;
  const [only, ...others] = found;
  if (only === undefined)
    throw new CommandFailure(
      `No notebook has the title ${name}: troupe notebooks list shows them, and troupe notebooks push brings a file to the server.`,
    );
  if (others.length === 0) return only.id;
  const named = found.slice(0, MAX_NAMED).map(({ id, title }) => `\n  ${id}  ${title}`);
  const more = found.length > MAX_NAMED ? '\n  …' : '';
  throw new CommandFailure(
    `Several notebooks have the title ${name}: name one by its id.${named.join('')}${more}`,
    EXIT.usage,
  );
}
