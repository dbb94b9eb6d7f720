/** Bringing a notebook file to the server: as a new notebook, or in place of the cells of the one with its title. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { ApiError } from '#src/client/api-error.ts';
import type { Client } from '#src/client/client.ts';
import type { Notebook, NotebookSummary } from '#src/wire/notebook.ts';
import { CommandFailure } from '../exit-code.ts';
import { formatOf, type NotebookFile, readNotebookFile } from './notebook-file.ts';
import { titleOfFile } from './notebook-title.ts';

/** The result of pushing a file. */
export interface Pushed {
  readonly notebook: Notebook;
  readonly isNew: boolean;
}

export interface PushOptions {
  /** The notebook to change; undefined for the one with the title of the file. */
  readonly notebookId?: string | undefined;
  /** The `updatedAt` of the last read: a notebook that has changed since is not replaced. */
  readonly expectedUpdatedAt?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Updates the notebook, or creates one if there is none with this title. Throws `CommandFailure` when there are several. */
export async function pushNotebook(
  client: Client,
  name: string,
  file: NotebookFile,
  { notebookId, expectedUpdatedAt, signal }: PushOptions,
): Promise<Pushed> {
  const title = titleOfFile(name, file);
  if (notebookId === undefined) {
    const found = await theOneTitled(client, title, signal);
    if (found === undefined)
      return { notebook: await client.notebooks.import({ ...file, title }, { signal }), isNew: true };
    return update(client, file, title, found, { expectedUpdatedAt, signal });
  }
  return update(client, file, title, await client.notebooks.get(notebookId, { signal }), {
    expectedUpdatedAt,
    signal,
  });
}

/**
 * Brings a file that is to be run: to the newest notebook with its title. While a session is open on that one, such as that of
 * another run, or when others change it at the same time, to a new one.
 */
export async function pushForRun(
  client: Client,
  name: string,
  file: NotebookFile,
  signal: AbortSignal,
): Promise<Pushed> {
  const title = titleOfFile(name, file);
  const [found] = await notebooksTitled(client, title, signal);
  try {
    if (found !== undefined) return await update(client, file, title, found, { signal });
  } catch (error) {
    const isTaken =
      error instanceof ApiError && ['session_open', 'stale_update', 'not_found'].includes(error.code ?? '');
    if (!isTaken) throw error;
  }
  return { notebook: await client.notebooks.import({ ...file, title }, { signal }), isNew: true };
}

async function update(
  client: Client,
  file: NotebookFile,
  title: string,
  { id: notebookId, updatedAt }: Pick<Notebook, 'id' | 'updatedAt'>,
  { expectedUpdatedAt = updatedAt, signal }: PushOptions,
): Promise<Pushed> {
  const replaces = { notebookId, expectedUpdatedAt };
  return { notebook: await client.notebooks.import({ ...file, title, replaces }, { signal }), isNew: false };
}

/**
 * Returns the notebook that belongs to a file: the one with this id, or with the title of the file, which need not exist. Throws
 * `CommandFailure` when there is none, or several have the title.
 */
export async function notebookOfFile(
  client: Client,
  name: string,
  cwd: string,
  notebookId: string | undefined,
): Promise<Pick<Notebook, 'id' | 'title' | 'updatedAt'>> {
  if (notebookId !== undefined) return client.notebooks.get(notebookId);
  const file = existsSync(resolve(cwd, name))
    ? readNotebookFile(name, cwd)
    : { format: formatOf(name), content: '' };
  const title = titleOfFile(name, file);
  const found = await theOneTitled(client, title);
  if (found === undefined)
    throw new CommandFailure(`No notebook has the title ${title}: name one with --notebook.`);
  return found;
}

async function theOneTitled(
  client: Client,
  title: string,
  signal?: AbortSignal,
): Promise<NotebookSummary | undefined> {
  const [found, ...others] = await notebooksTitled(client, title, signal);
  if (found === undefined || others.length === 0) return found;
  const ids = [found, ...others].map(({ id }) => id).join(', ');
  throw new CommandFailure(`Several notebooks have the title ${title}: name one with --notebook (${ids}).`);
}

/** Returns the notebooks with exactly this title, newest first. */
async function notebooksTitled(
  client: Client,
  title: string,
  signal?: AbortSignal,
): Promise<NotebookSummary[]> {
  const found: NotebookSummary[] = [];
  for await (const notebook of client.notebooks.each({ title, order: 'desc', limit: 100, signal }))
    if (notebook.title === title) found.push(notebook);
  return found;
}
