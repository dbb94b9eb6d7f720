/**
 * Keeps a notebook file and its notebook on the server equal without losing anybody's work. A side is replaced only if it has not
 * changed since both were last equal, or if the user demands it.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Notebook, NotebookSummary } from '#src/contract/wire/notebook.ts';
import type { CliContext } from '../command-group.ts';
import { CommandFailure } from '../exit-code.ts';
import { writePlain } from '../plain-path.ts';
import { diffText } from '../show/diff.ts';
import type { FileLinks } from './file-links.ts';
import {
  fileFormatOf,
  importWarnings,
  type LocalNotebook,
  readNotebookFile,
  readTextFile,
} from './notebook-file.ts';
import { titleOfFile } from './notebook-title.ts';

/** The metadata key that marks a copy made by `troupe run` for one run; its value is the id of the copied notebook. */
export const COPY_OF = 'copy-of';

/** The most code of cells that is remembered. */
const MAX_CODE_CHARS = 256 * 1024;

export interface SyncContext {
  readonly client: Client;
  readonly cwd: string;
  readonly links: FileLinks;
  /** Shows a warning. */
  readonly warn: (text: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** The result of bringing a file to the server. */
export interface Pushed {
  readonly notebook: Notebook;
  /** Whether the notebook was made, changed, or already equal to the file. */
  readonly outcome: 'created' | 'updated' | 'same';
}

export interface PushOptions {
  /** The notebook to change; undefined: the file's notebook. */
  readonly notebookId?: string | undefined;
  /** The `updatedAt` that the user has read: the notebook is replaced unless it has changed since. */
  readonly expectedUpdatedAt?: string | undefined;
  /** Replace the notebook, even when it has changes that the file does not have. */
  readonly force: boolean;
  /** An additional solution that the message of a refusal offers. */
  readonly advice?: string;
}

/**
 * Replaces the cells of the file's notebook, or creates the notebook. Throws `CommandFailure` with the differences when the
 * notebook has changed since it was last equal to the file.
 */
export async function pushFile(
  context: SyncContext,
  name: string,
  given: LocalNotebook,
  { notebookId, expectedUpdatedAt, force, advice = '' }: PushOptions,
): Promise<Pushed> {
  const { client, links, signal } = context;
  const wasInstalled = links.get(name)?.install === true;
  const file = wasInstalled ? { ...given, install: true } : given;
  const title = titleOfFile(name, file);
  const notebook = await notebookFor(context, name, file, notebookId);
  if (notebook === undefined) {
    const made = await client.notebooks.import({ ...file, title }, { signal });
    for (const text of importWarnings(name, made)) context.warn(text);
    remember(context, name, file, made);
    return { notebook: made, outcome: 'created' };
  }
  if (expectedUpdatedAt === undefined) {
    const state = await compare(context, name, file, notebook);
    const isNewWish = file.install === true && !wasInstalled;
    if (state.isEqual && notebook.title === title && !isNewWish) return { notebook, outcome: 'same' };
    if (state.isChangedThere && !force)
      throw new CommandFailure(
        `${whoChanged(notebook, name)}\n${state.changes}` +
          `Nothing was changed. ${advice}--force replaces the notebook by the file, and keeps it as a version; troupe notebooks ` +
          `pull ${name} fetches it.`,
      );
  }
  const replaces = { notebookId: notebook.id, expectedUpdatedAt: expectedUpdatedAt ?? notebook.updatedAt };
  const changed = await client.notebooks.import({ ...file, title, replaces }, { signal });
  for (const text of importWarnings(name, changed)) context.warn(text);
  remember(context, name, file, changed);
  return { notebook: changed, outcome: 'updated' };
}

/** The result of fetching a notebook into a file. */
export interface Pulled {
  readonly notebook: Notebook;
  /** Whether the file was changed. */
  readonly isNew: boolean;
}

/**
 * Writes a notebook to its file. If changes of the file would be lost, throws `CommandFailure` with the differences, unless
 * `theirs` is true.
 */
export async function pullFile(
  context: SyncContext,
  name: string,
  { notebookId, theirs }: { readonly notebookId?: string | undefined; readonly theirs: boolean },
): Promise<Pulled> {
  const { client, cwd, links, signal } = context;
  const format = fileFormatOf(name);
  const file = existsSync(resolve(cwd, name)) ? { format, content: readTextFile(name, cwd) } : undefined;
  const notebook = await notebookFor(context, name, file ?? { format, content: '' }, notebookId);
  if (notebook === undefined)
    throw new CommandFailure(
      `No notebook belongs to ${name}: name one with --notebook (troupe notebooks list shows them).`,
    );
  const { bytes } = await client.notebooks.export(notebook.id, format, { signal });
  const fetched = { format, content: Buffer.from(bytes).toString('utf8') };
  const isEqual = file !== undefined && stateOfFile(file) === stateOfFile(fetched);
  if (file !== undefined && !isEqual && !theirs) {
    const link = linkOf(links, name, notebook.id);
    if (link?.file !== stateOfFile(file))
      throw new CommandFailure(
        `${name} has changes that the notebook ${notebook.id} does not have:\n` +
          `${diffText(comparable(file), comparable(fetched))}` +
          `Nothing was changed. --theirs replaces the file; troupe notebooks push ${name} sends it.`,
      );
    if (link.notebook === stateOfNotebook(notebook)) return { notebook, isNew: false };
  }
  if (!isEqual) writePlain(name, cwd, bytes);
  const install = links.get(name)?.install === true ? { install: true } : {};
  remember(context, name, { ...fetched, ...install }, notebook);
  return { notebook, isNew: !isEqual };
}

/** A file that is to be run, and its notebook. */
export interface RunTarget extends Comparison {
  readonly notebook: Notebook;
}

/** Returns the notebook of a file that is about to run; undefined when there is none. */
export async function targetOfRun(
  context: SyncContext,
  name: string,
  file: LocalNotebook,
): Promise<RunTarget | undefined> {
  const notebook = await notebookFor(context, name, file, undefined, 'newest');
  if (notebook === undefined) return undefined;
  return { notebook, ...(await compare(context, name, file, notebook)) };
}

/** Returns the context of a command that keeps files and notebooks equal. */
export function syncContextOf(
  { cwd, terminal, connect, links }: Pick<CliContext, 'cwd' | 'terminal' | 'connect' | 'links'>,
  command: Command,
): SyncContext {
  return {
    client: connect(command),
    cwd,
    links: links(command),
    warn: (text) => terminal.err(`${text}\n`),
  };
}

/**
 * Returns the id of a notebook that is named by its id or by its file. The file need not exist. With `pushes`, a file that
 * has no notebook yet is made into one. Throws `CommandFailure` when there is no notebook, or several have the title.
 */
export async function idOfNotebook(
  context: SyncContext,
  name: string,
  { pushes = false }: { readonly pushes?: boolean } = {},
): Promise<string> {
  if (/^nb_\w+$/.test(name)) return name;
  const isFile = existsSync(resolve(context.cwd, name));
  const file = isFile ? readNotebookFile(name, context.cwd) : { format: fileFormatOf(name), content: '' };
  const notebook = await notebookFor(context, name, file, undefined);
  if (notebook !== undefined) return notebook.id;
  if (isFile && pushes) {
    const made = (await pushFile(context, name, file, { force: false })).notebook;
    context.warn(`${name} is now the notebook ${made.id}.`);
    return made.id;
  }
  throw new CommandFailure(
    isFile
      ? `No notebook of yours belongs to ${name}: push the file, or give the id of a notebook (troupe notebooks list).`
      : `There is no file ${name} here, and no notebook of yours belongs to it: give a file, or the id of a notebook (troupe notebooks list).`,
  );
}

/** Remembers that a file and its notebook are equal. */
function remember({ links, warn }: SyncContext, name: string, file: LocalNotebook, notebook: Notebook): void {
  const code = codeOf(notebook);
  const failure = links.set(name, {
    notebookId: notebook.id,
    file: stateOfFile(file),
    notebook: stateOfNotebook(notebook),
    ...(code.length > MAX_CODE_CHARS ? {} : { code }),
    ...(file.install === true ? { install: true } : {}),
  });
  if (failure !== undefined) warn(`the notebook of ${name} cannot be remembered: ${failure}`);
}

/**
 * Returns the notebook with the id, or the notebook that the file was last pushed to or pulled from, or the caller's notebook
 * with the title of the file. Notebooks of other people are not found by title. Throws `CommandFailure` when several notebooks
 * have the title, unless `newest` selects one.
 */
async function notebookFor(
  { client, links, signal }: SyncContext,
  name: string,
  file: LocalNotebook,
  notebookId: string | undefined,
  choice: 'only' | 'newest' = 'only',
): Promise<Notebook | undefined> {
  if (notebookId !== undefined) return client.notebooks.get(notebookId, { signal });
  const linked = links.get(name);
  if (linked !== undefined) {
    const notebook = await unlessMissing(client.notebooks.get(linked.notebookId, { signal }));
    if (notebook !== undefined) return notebook;
  }
  const title = titleOfFile(name, file);
  const titled = await notebooksTitled(client, title, signal);
  if (titled.length === 0) return undefined;
  const { user } = await client.me({ signal });
  const own = titled.filter(
    ({ id, createdBy, metadata }) =>
      createdBy === user.id && metadata?.[COPY_OF] === undefined && !links.isOfOtherFile(id, name),
  );
  const [found, ...others] = own;
  if (found === undefined) return undefined;
  if (others.length === 0 || choice === 'newest') return client.notebooks.get(found.id, { signal });
  const ids = own.map(({ id }) => id).join(', ');
  throw new CommandFailure(`Several notebooks have the title ${title}: name one with --notebook (${ids}).`);
}

/** How a file and its notebook differ. */
interface Comparison {
  /** Whether both have the same code. */
  readonly isEqual: boolean;
  /** Whether the notebook has changes that were never in the file. */
  readonly isChangedThere: boolean;
  /** The changes of the notebook, or its differences from the file, as text. */
  readonly changes: string;
}

async function compare(
  context: SyncContext,
  name: string,
  file: LocalNotebook,
  notebook: Notebook,
): Promise<Comparison> {
  const { client, links, signal } = context;
  const link = linkOf(links, name, notebook.id);
  const isUnchangedThere = link?.notebook === stateOfNotebook(notebook);
  if (isUnchangedThere)
    return { isEqual: link.file === stateOfFile(file), isChangedThere: false, changes: '' };
  const { bytes } = await client.notebooks.export(notebook.id, file.format, { signal });
  const there = { format: file.format, content: Buffer.from(bytes).toString('utf8') };
  if (stateOfFile(there) === stateOfFile(file)) {
    remember(context, name, link?.install === true ? { ...file, install: true } : file, notebook);
    return { isEqual: true, isChangedThere: false, changes: '' };
  }
  const changes =
    link?.code === undefined
      ? diffText(comparable(file), comparable(there))
      : diffText(link.code, codeOf(notebook));
  if (link !== undefined) return { isEqual: false, isChangedThere: true, changes };
  // Without a link, for example on another machine, the notebook is replaced if the caller made its last change. The replaced
  // state remains as a version, which can be restored.
  const { user } = await client.me({ signal });
  const isOwn = (notebook.updatedBy ?? notebook.createdBy) === user.id;
  return { isEqual: false, isChangedThere: !isOwn, changes };
}

function linkOf(links: FileLinks, name: string, notebookId: string) {
  const link = links.get(name);
  return link?.notebookId === notebookId ? link : undefined;
}

/** Returns the sentence that says who has changed the notebook of a file, and when. */
function whoChanged({ id, updatedAt, updatedBy }: Notebook, name: string): string {
  const by = updatedBy === undefined ? '' : ` by ${updatedBy}`;
  return `The notebook ${id} has changes that ${name} does not have; the last one was made${by} at ${updatedAt}:`;
}

/** Returns the notebooks with exactly this title, newest first. */
async function notebooksTitled(
  client: Client,
  title: string,
  signal: AbortSignal | undefined,
): Promise<NotebookSummary[]> {
  const found: NotebookSummary[] = [];
  for await (const notebook of client.notebooks.each({ title, order: 'desc', limit: 100, signal }))
    if (notebook.title === title) found.push(notebook);
  return found;
}

async function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** Returns a text that changes when the file would become another notebook. */
function stateOfFile(file: LocalNotebook): string {
  return sha256(comparable(file));
}

/** Returns a text that changes only with a notebook's cells and app settings. */
function stateOfNotebook({ serialization }: Notebook): string {
  const { app, cells } = serialization;
  return sha256(JSON.stringify([app.options, cells.map(({ code, options }) => [code, options])]));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Returns the code of a notebook's cells, each below its name or id. */
function codeOf({ serialization }: Notebook): string {
  return serialization.cells
    .map(({ cell_id, code, options }) => {
      const name = typeof options.name === 'string' && options.name !== '' ? options.name : cell_id;
      return `# cell ${name}\n${code}\n`;
    })
    .join('\n');
}

/** Returns the text for comparing two states of a file; for a Jupyter notebook, its cells without their outputs. */
function comparable({ format, content }: LocalNotebook): string {
  if (format !== 'ipynb') return content.replace(/\r\n/g, '\n');
  try {
    const { cells } = JSON.parse(content) as {
      cells: readonly { cell_type: string; source: string | string[] }[];
    };
    return cells
      .map(({ cell_type, source }) => `# ${cell_type} cell\n${[source].flat().join('')}\n`)
      .join('\n');
  } catch {
    return content; // the server reports where it is broken
  }
}
