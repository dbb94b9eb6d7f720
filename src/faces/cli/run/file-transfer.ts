/** Copies single files and folders between this machine and the workspace, piece by piece. Links are not sent. */
import { randomUUID } from 'node:crypto';
import { lstat, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import { makeFolder } from '#src/base/os/make-folder.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { RequestOptions } from '#src/contract/client/connection.ts';
import type { FileEntry } from '#src/contract/wire/files.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { READ_PLAIN } from '../plain-path.ts';

/** A file that was copied here. */
export interface FetchedFile {
  /** The path in the workspace. */
  readonly path: string;
  /** The path on this machine. */
  readonly file: string;
  readonly bytes: number;
  /** The time at which it was last written in the workspace. */
  readonly updatedAt: string;
}

/** Folders that are left out when a command sends their parent folder. */
const SKIPPED: ReadonlySet<string> = new Set(['.git', '.venv', '__pycache__', 'node_modules', '.troupe']);

/** Stores a file, or a folder with everything in it, as `target`. Rejects with `CommandFailure` when the source does not exist. */
export async function sendPath(
  client: Client,
  source: string,
  target: string,
  options: RequestOptions = {},
): Promise<FileEntry[]> {
  const status = await stat(source).catch(() => undefined);
  if (status === undefined) throw new CommandFailure(`There is no file or folder ${source}.`, EXIT.usage);
  if (!status.isDirectory() && !status.isFile())
    throw new CommandFailure(`${source} is neither a file nor a folder.`, EXIT.usage);
  const files = status.isDirectory() ? filesIn(source) : [''];
  const stored: FileEntry[] = [];
  for await (const file of files) {
    const place = file === '' || target === '' ? `${target}${file}` : `${target}/${file}`;
    const opened = await open(join(source, file), READ_PLAIN);
    const content = Readable.toWeb(opened.createReadStream()) as ReadableStream<Uint8Array>;
    stored.push(await client.files.put(place, content, options));
  }
  return stored;
}

/** Yields the paths of the files in a folder and its subfolders, by name, with slashes. Links are not followed. */
export async function* filesIn(folder: string): AsyncGenerator<string, void, undefined> {
  for (const name of (await readdir(folder)).sort()) {
    const status = await lstat(join(folder, name));
    if (status.isFile()) yield name;
    else if (status.isDirectory() && !SKIPPED.has(name))
      for await (const file of filesIn(join(folder, name))) yield `${name}/${file}`;
  }
}

/**
 * Copies a file to `target`, whose path has no links: the caller has checked that. The target appears, or is replaced, once the
 * copy is complete.
 */
export async function fetchFile(
  client: Client,
  { path, updatedAt }: Pick<FileEntry, 'path' | 'updatedAt'>,
  target: string,
  options: RequestOptions = {},
): Promise<FetchedFile> {
  const { body } = await client.files.open(path, options);
  makeFolder(dirname(target));
  // The name of the partial file does not contain the file's name, which may be as long as a name can be.
  const part = join(dirname(target), `.troupe-${randomUUID()}.part`);
  try {
    // The file is opened before anything is read. Otherwise the partial file of a download that breaks off at once would be
    // removed before it exists.
    const file = (await open(part, 'wx')).createWriteStream();
    await pipeline(body === null ? [] : Readable.fromWeb(body as NodeReadableStream), file);
    await rename(part, target);
    return { path, file: target, bytes: file.bytesWritten, updatedAt };
  } catch (error) {
    await body?.cancel().catch(() => {}); // the body is locked, unless the file could not be opened
    await rm(part, { force: true });
    throw error;
  }
}

/**
 * Throws unless the path lies in the requested folder of the workspace and below the local target folder, because the server must
 * not choose a place on this machine.
 */
export function checkFetched(path: string, folder: string): void {
  const isPlain = path
    .split('/')
    .every((part) => part !== '' && part !== '.' && part !== '..' && !part.includes(sep));
  if (!isPlain || !path.startsWith(folder))
    throw new CommandFailure(
      `The server has sent a file with a path that cannot be stored here: ${JSON.stringify(path)}.`,
    );
}
