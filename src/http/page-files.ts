/**
 * The files of a web page, as the build leaves them in a folder of `dist`. The first request for one of the files reads all of
 * them, and they are served from memory. Only files that the build lists are read.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import type { READ_CONDITION } from '#src/contract/wire/operations/parts.ts';
import { contentTag, isKnown } from './reply/entity-tag.ts';
import { type BytesReply, type EmptyReply, type SharedForms, sharedDocument } from './reply/reply.ts';

export interface PageFile {
  readonly contentType: string;
  readonly bytes: Uint8Array;
  readonly etag: string;
  readonly shared: SharedForms;
  /**
   * The source expression for this page's script in a content security policy; null when the page
   * has none.
   */
  readonly inlineScript: string | null;
}

const PAGE = 'index.html';
/** The headers of the page itself. Its name stays the same when its content changes. */
const PAGE_HEADERS = { 'cache-control': 'no-cache', 'cross-origin-opener-policy': 'same-origin' };
/** The headers of the page's other files. Their names change with their content. */
const FILE_HEADERS = { 'cache-control': 'public, max-age=31536000, immutable' };

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

  /**
   * Rejects with `not_found` for a name that the build has not listed, and with `unavailable` when
   * the page was not built.
   */
  async read(name: string): Promise<PageFile> {
    this.#files ??= load(this.#folder);
    const file = (await this.#files).get(name);
    if (file === undefined) throw notFound();
    return file;
  }
}

interface PageRequest {
  readonly headers: Readonly<Record<keyof typeof READ_CONDITION, string>>;
}

/** The common part of the routes of pages and their files. */
const COMMON = { tags: ['Server'], access: 'public', isUndocumented: true } as const;

/** Returns the part of a route that serves the page itself, with this `content-security-policy`. `name` is its file. */
export function pageHandling(files: PageFiles, policy: string, name = PAGE) {
  return {
    ...COMMON,
    errors: ['unavailable'],
    isPage: true,
    handle: async ({ headers }: PageRequest) =>
      pageReply(await files.read(name), { ...PAGE_HEADERS, 'content-security-policy': policy }, headers),
  } as const;
}

/**
 * Returns the part of a route that redirects from the address of a page with a slash at its end to `name`, the address without
 * the slash. That address is relative, because the server may be below a path of a proxy.
 */
export function pageRedirection(name: string) {
  return {
    ...COMMON,
    isPage: true,
    description: `The links of the page are relative to \`/${name}\`, without a slash at its end.`,
    handle: () => ({ kind: 'empty', status: 308, headers: { location: `../${name}` } }) as const,
  } as const;
}

/**
 * Returns the part of a route that serves the other files of the page. `headersOf` returns the
 * additional headers of a file.
 */
export function pageFileHandling(
  files: PageFiles,
  headersOf: (file: PageFile) => Readonly<Record<string, string>> = () => ({}),
) {
  return {
    ...COMMON,
    errors: ['unavailable'],
    async handle({ params, headers }: PageRequest & { readonly params: { readonly file: string } }) {
      if (params.file.endsWith('.html') && !/-[0-9A-F]{8}\.html$/.test(params.file)) throw notFound(); // the page has a path of its own, with its policy
      const file = await files.read(params.file);
      return pageReply(file, { ...FILE_HEADERS, ...headersOf(file) }, headers);
    },
  } as const;
}

/**
 * Returns the file, or 304 when the browser has the file. A 304 has the same headers, because a browser replaces its stored
 * headers with those of a 304. With the general policy of this server, the page could then load nothing.
 */
function pageReply(
  { contentType, bytes, etag, shared }: PageFile,
  own: Readonly<Record<string, string>>,
  requested: Readonly<Record<keyof typeof READ_CONDITION, string>>,
): BytesReply | EmptyReply {
  const headers = { ...own, etag };
  if (isKnown(requested['if-none-match'], etag)) return { kind: 'empty', status: 304, headers };
  return sharedDocument(contentType, bytes, shared, headers);
}

async function load(folder: string): Promise<ReadonlyMap<string, PageFile>> {
  const listed = await listedIn(folder);
  const entries = Object.entries(listed).map(async ([name, inlineScript]) => {
    const bytes = await readFile(join(folder, name));
    const contentType = CONTENT_TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
    return [name, { contentType, bytes, etag: contentTag(bytes), shared: {}, inlineScript }] as const;
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
