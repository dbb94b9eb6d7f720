/** Files as command lines name them, on this machine and in the workspace: paths, folders and patterns. */
import { existsSync, statSync } from 'node:fs';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { RequestOptions } from '#src/contract/client/connection.ts';
import type { FileEntry } from '#src/contract/wire/files.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { plainPath } from '../plain-path.ts';
import { checkFetched, type FetchedFile, fetchFile, filesIn, sendPath } from './file-transfer.ts';
import { folderOfGlob, globMatcher, isGlob } from './glob.ts';

/**
 * Stores the files that an argument names: `data/`, `mylib.py`, `data/*.csv`, or with a target in the workspace `../data=data`.
 * Throws `CommandFailure` when no file has the name, or a file lies outside of `cwd` and has no target.
 */
export async function sendNamed(
  client: Client,
  cwd: string,
  named: string,
  options: RequestOptions = {},
): Promise<FileEntry[]> {
  if (existsSync(resolve(cwd, named))) return sendAs(client, cwd, named, undefined, options);
  const split = named.lastIndexOf('=');
  if (split > 0) return sendAs(client, cwd, named.slice(0, split), named.slice(split + 1), options);
  if (!isGlob(named)) throw new CommandFailure(`There is no file or folder ${named}.`, EXIT.usage);
  const folder = folderOfGlob(named);
  const matches = globMatcher(named);
  const stored: FileEntry[] = [];
  if (existsSync(resolve(cwd, folder)))
    for await (const file of filesIn(plainPath(folder, cwd)))
      if (matches(folder + file))
        stored.push(...(await sendAs(client, cwd, folder + file, undefined, options)));
  if (stored.length === 0) throw new CommandFailure(`No file matches ${named}.`, EXIT.usage);
  return stored;
}

/** Stores a file or folder under its path from `cwd`, or at `place`. A slash at the end of `place` means a folder for it. */
export async function sendAs(
  client: Client,
  cwd: string,
  path: string,
  place: string | undefined,
  options: RequestOptions = {},
): Promise<FileEntry[]> {
  const source = plainPath(path, cwd);
  if (place !== undefined) {
    const isFileInFolder = place.endsWith('/') && existsSync(source) && !statSync(source).isDirectory();
    const target = isFileInFolder ? `${place}${source.slice(source.lastIndexOf(sep) + 1)}` : place;
    return sendPath(client, source, target.replace(/(?<!\/)\/+$/, ''), options);
  }
  const below = relative(cwd, source);
  if (below === '..' || below.startsWith(`..${sep}`) || isAbsolute(below)) {
    const text = `${path} lies outside of this directory: name its place in the workspace, as in ${path}=data/.`;
    throw new CommandFailure(text, EXIT.usage);
  }
  return sendPath(client, source, below.split(sep).join('/'), options);
}

/**
 * Returns the files of the workspace that an argument names: a file, a folder with everything in it, or the matches of
 * a pattern; an empty list when there are none.
 */
export async function filesNamed(
  client: Client,
  path: string,
  options: RequestOptions = {},
): Promise<FileEntry[]> {
  const found: FileEntry[] = [];
  try {
    if (!path.endsWith('/')) {
      // The path itself sorts before all paths that begin with it.
      const [first] = (await client.files.list({ prefix: path, limit: 1, ...options })).items;
      if (first?.path === path) return [first];
      if (first?.path === `${path}/`) return await filesNamed(client, first.path, options);
      if (!isGlob(path)) return [];
    }
    const matches = isGlob(path) && !path.endsWith('/') ? globMatcher(path) : () => true;
    const folder = path.endsWith('/') ? path : folderOfGlob(path);
    for await (const entry of client.files.walk(folder, options)) {
      checkFetched(entry.path, folder);
      if (matches(entry.path)) found.push(entry);
    }
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  }
  return found;
}

/** Copies the files to their paths below `directory`. */
export async function fetchAll(
  client: Client,
  entries: readonly FileEntry[],
  directory: string,
  options: RequestOptions = {},
): Promise<FetchedFile[]> {
  const fetched: FetchedFile[] = [];
  for (const entry of entries) {
    checkFetched(entry.path, '');
    fetched.push(await fetchFile(client, entry, plainPath(entry.path, directory), options));
  }
  return fetched;
}
