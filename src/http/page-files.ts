/**
 * The files of a web page, as the build leaves them in a folder of `dist`: read once, when the first is asked for, and served
 * from memory. Only the names that the build lists are ever read.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, notFound } from '#src/core/errors.ts';
import { PACKAGE_ROOT } from '#src/core/package-root.ts';
import type { READ_CONDITION } from '#src/wire/operations/parts.ts';
import { contentTag, isKnown } from './reply/entity-tag.ts';
import { type BytesReply, type EmptyReply, raw } from './reply/reply.ts';

export interface PageFile {
  readonly contentType: string;
  readonly bytes: Uint8Array;
  readonly etag: string;
  /** The source expression by which a content security policy allows the script in this page; null when there is none. */
  readonly inlineScript: string | null;
}

/** The headers of the page itself, whose name stays when its content changes. */
export const PAGE_HEADERS = { 'cache-control': 'no-cache', 'cross-origin-opener-policy': 'same-origin' };
/** The headers of its other files, whose names change with their content. */
export const FILE_HEADERS = { 'cache-control': 'public, max-age=31536000, immutable' };

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  svg: 'image/svg+xml',
};

export class PageFiles {
  readonly #folder: string;
  #files: Promise<ReadonlyMap<string, PageFile>> | undefined;

  /** `name` is the folder in `dist`. */
  constructor(name: 'console' | 'docs') {
    this.#folder = join(PACKAGE_ROOT, 'dist', name);
  }

  /** Rejects with `not_found` for a name that the build has not listed, and with `unavailable` when there is no build. */
  async read(name: string): Promise<PageFile> {
    this.#files ??= load(this.#folder);
    const file = (await this.#files).get(name);
    if (file === undefined) throw notFound();
    return file;
  }
}

/**
 * Returns the file, or 304 when the browser has it. A 304 has the same headers, because a browser replaces the stored headers
 * with them: with the general policy of this server, the page could load nothing.
 */
export function pageReply(
  { contentType, bytes, etag }: PageFile,
  own: Readonly<Record<string, string>>,
  requested: Readonly<Record<keyof typeof READ_CONDITION, string>>,
): BytesReply | EmptyReply {
  const headers = { ...own, etag };
  if (isKnown(requested['if-none-match'], etag)) return { kind: 'empty', status: 304, headers };
  return raw(contentType, bytes, headers);
}

async function load(folder: string): Promise<ReadonlyMap<string, PageFile>> {
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
      'This page has not been built. Run `npm run setup` and restart the server.',
    );
  }
}
