/** The contents of a backup: the file `manifest.json` in it, which is written last and binds everything together. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError, systemFailure } from '#src/base/errors/operator-error.ts';
import { EXPORT_NOTEBOOKS } from '#storage/open-store.ts';
import { type CopiedFile, type CopiedLink, checksumOfCopy, isSameFile } from './file-copy.ts';
import type { Lineage } from './lineage.ts';

export interface Manifest {
  readonly kind: 'troupe-backup';
  /** Builds before 1.0.0 wrote version 1. */
  readonly version: 2;
  readonly createdAt: string;
  /** The release that made the backup. */
  readonly release: string;
  readonly store: { readonly format: number; readonly bytes: number; readonly sha256: string };
  /**
   * The ids of the keys that a keyring must have to open the backup. The keys themselves are in no
   * backup.
   */
  readonly keyIds: readonly string[];
  /** The copied files, with their paths relative to `workspaces`; those of kernel nodes are in `../nodes`. */
  readonly files: readonly CopiedFile[];
  readonly links: readonly CopiedLink[];
  readonly folders: readonly string[];
  readonly skipped: readonly string[];
  /** The state of the store to which increments can be added; only in backups that a server makes of itself. */
  readonly lineage?: Lineage;
}

export const MANIFEST_FILE = 'manifest.json';

/**
 * Returns the manifest of the backup in `directory`. Throws `OperatorError` when there is no manifest, or when a newer release
 * or a build before 1.0.0 made the backup.
 */
export function readManifest(directory: string): Manifest {
  const path = join(directory, MANIFEST_FILE);
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (!(error instanceof SyntaxError))
      throw systemFailure(`The backup ${directory} has no readable manifest`, error);
  }
  const { kind, version } = { ...emptyManifest, ...Object(content) };
  if (kind === 'troupe-backup' && version === 1)
    throw new OperatorError(
      `The backup ${directory} was made by a build before 1.0.0, which this release does not read.`,
      EXPORT_NOTEBOOKS,
    );
  if (!isManifest(content))
    throw new OperatorError(
      `${directory} is not a complete backup of this release.`,
      'Name the directory that troupe backup has made, or use the release that made the backup.',
    );
  return content;
}

function isManifest(content: unknown): content is Manifest {
  const { kind, version, files, links, keyIds, folders } = { ...emptyManifest, ...Object(content) };
  return kind === 'troupe-backup' && version === 2 && [files, links, keyIds, folders].every(Array.isArray);
}

const emptyManifest = { kind: '', version: 0, files: null, links: null, keyIds: null, folders: null };

/** Yields the differences from the manifest, in words. Reads every file. */
export async function* differencesFrom(manifest: Manifest, directory: string): AsyncGenerator<string> {
  const workspaces = join(directory, 'workspaces');
  const store = { ...manifest.store, path: join('..', 'store', 'data.mdb'), sameAs: undefined };
  for (const file of [store, ...manifest.files]) {
    if (await isOtherName(file, workspaces)) continue;
    const { bytes, sha256 } = file;
    const path = join('workspaces', file.path);
    const found = await checksumOfCopy(join(directory, path)).catch(() => undefined);
    if (found === undefined) yield `${path} is missing or cannot be read`;
    else if (found.bytes !== bytes) yield `${path} has ${found.bytes} bytes instead of ${bytes}`;
    else if (found.sha256 !== sha256) yield `${path} has other content`;
  }
}

/**
 * Resolves with whether the copy of a file below `folder` is a hard link to an earlier file of the list with the same content, so
 * that it need not be read again.
 */
export async function isOtherName(
  { path, sameAs }: Pick<CopiedFile, 'path'> & { readonly sameAs?: string | undefined },
  folder: string,
): Promise<boolean> {
  return sameAs !== undefined && (await isSameFile(join(folder, sameAs), join(folder, path)));
}
