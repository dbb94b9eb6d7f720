/** Notebooks and jobs that a person has named by a title or a name in place of an id. */
import { extname } from 'node:path';
import type { Command } from 'commander';
import type { Client } from '#src/contract/client/client.ts';
import type { Job } from '#src/contract/wire/job.ts';
import type { NotebookSummary } from '#src/contract/wire/notebook.ts';
import type { CliContext } from '../command-group.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { idOfNotebook, syncContextOf } from './notebook-sync.ts';

/** The most ids that are listed when several objects have the same name. */
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
  const [only, ...others] = exact.length > 0 ? exact : containing;
  if (only === undefined)
    throw new CommandFailure(
      `No notebook has the title ${name}: troupe notebooks list shows them, and troupe notebooks push brings a file to the server.`,
    );
  if (others.length === 0) return only.id;
  throw severalNamed(
    `notebooks have the title ${name}`,
    [only, ...others].map(({ id, title }) => `${id}  ${title}`),
  );
}

/** Returns the id of the job that an id or a name means. The server is asked only about names. Throws `CommandFailure`. */
export async function jobNamed(client: Client, name: string): Promise<string> {
  if (/^job_\w+$/.test(name)) return name;
  const found: Job[] = [];
  for await (const job of client.jobs.each({ order: 'desc', limit: 100 })) {
    if (job.name === name) found.push(job);
    if (found.length > MAX_NAMED) break;
  }
  const [only, ...others] = found;
  if (only === undefined)
    throw new CommandFailure(
      `No job has the name ${name}: troupe jobs list shows the names and ids of jobs.`,
    );
  if (others.length === 0) return only.id;
  throw severalNamed(
    `jobs have the name ${name}`,
    found.map(({ id }) => id),
  );
}

function severalNamed(what: string, objects: readonly string[]): CommandFailure {
  const named = objects.slice(0, MAX_NAMED).map((object) => `\n  ${object}`);
  const more = objects.length > MAX_NAMED ? '\n  …' : '';
  return new CommandFailure(`Several ${what}: name one by its id.${named.join('')}${more}`, EXIT.usage);
}
