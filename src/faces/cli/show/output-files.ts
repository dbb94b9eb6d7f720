import { join, relative, sep } from 'node:path';
import { makeFolder } from '#src/base/os/make-folder.ts';
import { plainPath, writePlain } from '../plain-path.ts';
import type { OutputFile } from './output.ts';

export interface KeptFile {
  readonly cellId: string;
  readonly mimetype: string;
  readonly path: string;
}

const EXTENSIONS = new Map(
  Object.entries({
    'image/png': 'png',
    'image/jpeg': 'jpg',
    'image/gif': 'gif',
    'image/webp': 'webp',
    'image/avif': 'avif',
    'image/bmp': 'bmp',
    'image/tiff': 'tiff',
    'image/svg+xml': 'svg',
    'application/pdf': 'pdf',
    'text/csv': 'csv',
    'text/plain': 'txt',
    'text/html': 'html',
    'audio/wav': 'wav',
    'audio/x-wav': 'wav',
    'audio/mpeg': 'mp3',
    'audio/ogg': 'ogg',
    'video/mp4': 'mp4',
    'video/webm': 'webm',
    'application/vnd.plotly.v1+json': 'plotly.json',
  }),
);

/** Writes outputs that are not text into one directory. The first output creates the directory. */
export class OutputFiles {
  readonly kept: KeptFile[] = [];
  readonly #directory: string;
  readonly #cwd: string;
  readonly #counts = new Map<string, number>();

  constructor(directory: string, cwd: string) {
    this.#directory = directory;
    this.#cwd = cwd;
  }

  /** Writes an output. Returns its path, relative to the working directory where that is shorter. */
  keep(cellId: string, label: string, { mimetype, bytes }: OutputFile): string {
    const stem = label.replace(/[^\w.-]+/g, '_').replace(/^\.+/, '_') || 'cell';
    const count = (this.#counts.get(stem) ?? 0) + 1;
    this.#counts.set(stem, count);
    const path = join(this.#directory, `${stem}-${count}.${extensionOf(mimetype)}`);
    plainPath(path, this.#cwd);
    makeFolder(this.#directory);
    writePlain(path, this.#cwd, bytes);
    this.kept.push({ cellId, mimetype, path });
    const near = relative(this.#cwd, path);
    if (near.startsWith('..')) return path;
    return `.${sep}${near}`;
  }
}

function extensionOf(mimetype: string): string {
  const known = EXTENSIONS.get(mimetype);
  if (known !== undefined) return known;
  if (mimetype.startsWith('application/vnd.vegalite')) return 'vl.json';
  return /json$/.test(mimetype) ? 'json' : 'bin';
}
