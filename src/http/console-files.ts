/**
 * The files of the console, as the build leaves them in `dist/console`: read once, when the first is asked for, and
 * served from memory. Only the names that the build lists are ever read.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, notFound } from '#src/core/errors.ts';
import { PACKAGE_ROOT } from '#src/core/package-root.ts';
import { contentTag } from './reply/entity-tag.ts';

export interface ConsoleFile {
  readonly contentType: string;
  readonly bytes: Uint8Array;
  readonly etag: string;
  /** The source expression by which a content security policy allows the script in this page; null when there is none. */
  readonly inlineScript: string | null;
}

const FOLDER = join(PACKAGE_ROOT, 'dist', 'console');

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  svg: 'image/svg+xml',
};

export class ConsoleFiles {
  readonly #folder: string;
  #files: Promise<ReadonlyMap<string, ConsoleFile>> | undefined;

  constructor(folder: string = FOLDER) {
    this.#folder = folder;
  }

  /** Rejects with `not_found` for a name that the build has not listed, and with `unavailable` when there is no build. */
  async read(name: string): Promise<ConsoleFile> {
    this.#files ??= load(this.#folder);
    const file = (await this.#files).get(name);
    if (file === undefined) throw notFound();
    return file;
  }
}

async function load(folder: string): Promise<ReadonlyMap<string, ConsoleFile>> {
  const listed = await listedIn(folder);
  const entries = Object.entries(listed).map(async ([name, inlineScript]) => {
    const bytes = await readFile(join(folder, name));
    const contentType = CONTENT_TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
    return [name, { contentType, bytes, etag: contentTag(bytes), inlineScript }] as const;
  });
  return new Map(await Promise.all(entries));
}

/** Returns the hash of the inline script of each file, or null, by the name of the file. */
async function listedIn(folder: string): Promise<Readonly<Record<string, string | null>>> {
  try {
    return JSON.parse(await readFile(join(folder, 'files.json'), 'utf8'));
  } catch {
    throw new AppError(
      'unavailable',
      'The console has not been built. Run `npm run setup` and restart the server.',
    );
  }
}
