/** Copies of files between this machine and the workspace, piece by piece. Links are not sent, and nothing is written outside of the target. */
import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Client } from '#src/client/client.ts';
import type { FileEntry } from '#src/wire/files.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';

/** A file that was copied here. */
export interface FetchedFile {
  readonly path: string;
  readonly bytes: number;
}

/** Folders that are never meant when a folder is named. */
const SKIPPED: ReadonlySet<string> = new Set(['.git', '.venv', '__pycache__', 'node_modules', '.troupe']);

/** Returns whether a path of the workspace names a folder. */
export function isFolderPath(path: string): boolean {
  return path.endsWith('/');
}

/**
 * Stores a file, or a folder with everything in it, under `as`, or under its path from `cwd`. Rejects with `CommandFailure` when it
 * does not exist, or lies outside of `cwd` and has no other name.
 */
export async function sendPath(client: Client, cwd: string, path: string, as?: string): Promise<FileEntry[]> {
  const source = resolve(cwd, path);
  const below = relative(cwd, source);
  const isOutside = below === '..' || below.startsWith(`..${sep}`) || isAbsolute(below);
  if (as === undefined && isOutside)
    throw new CommandFailure(
      `${path} does not lie in this directory: name its place in the workspace.`,
      EXIT.usage,
    );
  const target = (as ?? below.split(sep).join('/')).replace(/\/+$/, '');
  const status = await stat(source).catch(() => undefined);
  if (status === undefined) throw new CommandFailure(`There is no file or folder ${path}.`, EXIT.usage);
  return status.isDirectory() ? sendFolder(client, source, target) : [await sendFile(client, source, target)];
}

async function sendFolder(client: Client, source: string, target: string): Promise<FileEntry[]> {
  const stored: FileEntry[] = [];
  for (const name of (await readdir(source)).sort()) {
    const [from, to] = [join(source, name), target === '' ? name : `${target}/${name}`];
    const status = await lstat(from);
    if (status.isDirectory() && !SKIPPED.has(name)) stored.push(...(await sendFolder(client, from, to)));
    else if (status.isFile()) stored.push(await sendFile(client, from, to));
  }
  return stored;
}

async function sendFile(client: Client, source: string, target: string): Promise<FileEntry> {
  const content = Readable.toWeb(createReadStream(source)) as ReadableStream<Uint8Array>;
  return client.files.put(target, content);
}

/** Copies a file to `target`, or a folder with everything in it into the folder `target`. */
export async function fetchFile(client: Client, path: string, target: string): Promise<FetchedFile[]> {
  if (!isFolderPath(path)) return [await fetchOne(client, path, target)];
  const fetched: FetchedFile[] = [];
  for await (const entry of client.files.walk(path)) {
    const name = entry.path.slice(path.length);
    // The server sends no such names, but whoever runs it must not choose where files are written here.
    if (name.split('/').some((part) => part === '' || part === '.' || part === '..' || part.includes(sep)))
      throw new CommandFailure(`The server names a file that cannot be one: ${JSON.stringify(entry.path)}.`);
    fetched.push(await fetchOne(client, entry.path, join(target, name)));
  }
  return fetched;
}

async function fetchOne(client: Client, path: string, target: string): Promise<FetchedFile> {
  const { body } = await client.files.open(path);
  await mkdir(dirname(target), { recursive: true });
  const file = createWriteStream(target);
  if (body === null) file.end();
  else await pipeline(Readable.fromWeb(body as import('node:stream/web').ReadableStream), file);
  return { path: target, bytes: file.bytesWritten };
}
