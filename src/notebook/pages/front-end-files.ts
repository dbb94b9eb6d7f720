/**
 * The files of marimo's front end from the installed package, which an exported page loads. The files of a version are looked up
 * once, when the first of them is requested; only files found then are ever read.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, notFound } from '#src/base/errors/errors.ts';

/** An installed marimo. */
export interface Installed {
  readonly version: string;
  /** The folder of its package. */
  readonly directory: string;
}

export interface FrontEndFile {
  readonly contentType: string;
  readonly bytes: Uint8Array;
  /**
   * The same object for as long as this version is served. Under it, other modules keep what they make of the file, such as its
   * compressed bytes.
   */
  readonly shared: object;
}

interface Listing extends Installed {
  /** The files by name, such as `favicon.ico` or `assets/index-1a2b.js`. */
  readonly files: Promise<ReadonlyMap<string, SharedFile>>;
}

/**
 * A file that many clients may be sent at once, without a token. The clients share the bytes of the file: however slowly they
 * read, all of them take the memory of one.
 */
class SharedFile {
  readonly shared = {};
  readonly #path: string;
  #bytes: WeakRef<Uint8Array> | undefined;
  #reading: Promise<Uint8Array> | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async read(): Promise<Uint8Array> {
    const known = this.#bytes?.deref();
    if (known !== undefined) return known;
    this.#reading ??= readFile(this.#path).finally(() => {
      this.#reading = undefined;
    });
    const bytes = await this.#reading;
    this.#bytes = new WeakRef(bytes);
    return bytes;
  }
}

/** Documents are left out: a page of our origin could be driven by any site that links to it. */
const CONTENT_TYPES: ReadonlyMap<string, string> = new Map([
  ['css', 'text/css; charset=utf-8'],
  ['ico', 'image/x-icon'],
  ['js', 'text/javascript; charset=utf-8'],
  ['json', 'application/json'],
  ['png', 'image/png'],
  ['svg', 'image/svg+xml'],
  ['ttf', 'font/ttf'],
  ['wasm', 'application/wasm'],
  ['webmanifest', 'application/manifest+json'],
  ['woff', 'font/woff'],
  ['woff2', 'font/woff2'],
]);

export class FrontEndFiles {
  readonly #installed: () => Installed | undefined;
  #listing: Listing | undefined;

  /** `installed` returns undefined until the folder is known. */
  constructor(installed: () => Installed | undefined) {
    this.#installed = installed;
  }

  /** The version that is served. Throws `unavailable` until it is known. */
  version(): string {
    const installed = this.#installed();
    if (installed === undefined) throw new AppError('unavailable', 'The kernel host has not started yet.');
    return installed.version;
  }

  /** Throws `not_found` for a version or a name that is not served. */
  async read(version: string, name: string): Promise<FrontEndFile> {
    const installed = this.#installed();
    if (installed === undefined || installed.version !== version) throw notFound();
    const file = (await this.#filesOf(installed)).get(name);
    const contentType = contentTypeOf(name);
    if (file === undefined || contentType === undefined) throw notFound();
    return { contentType, bytes: await file.read(), shared: file.shared };
  }

  #filesOf({ version, directory }: Installed): Listing['files'] {
    const known = this.#listing;
    if (known?.version === version && known.directory === directory) return known.files;
    const files = list(join(directory, '_static'));
    this.#listing = { version, directory, files };
    return files;
  }
}

/**
 * Returns the files of the folder and of its `assets`, which an installer may have made links; none
 * when there is no folder.
 */
async function list(root: string): Promise<ReadonlyMap<string, SharedFile>> {
  const found = new Map<string, SharedFile>();
  for (const prefix of ['', 'assets/']) {
    const folder = join(root, prefix);
    const names = await readdir(folder).catch(() => []);
    for (const name of names) {
      if (contentTypeOf(name) === undefined) continue;
      const path = join(folder, name);
      if ((await stat(path)).isFile()) found.set(prefix + name, new SharedFile(path));
    }
  }
  return found;
}

function contentTypeOf(name: string): string | undefined {
  const ending = /\.([a-z0-9]+)$/.exec(name)?.[1];
  return ending === undefined ? undefined : CONTENT_TYPES.get(ending);
}
