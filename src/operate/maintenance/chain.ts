/**
 * A backup with the increments that a server has added to it, in `increments/000001` and so on.
 * Each increment has the pages of the store and the files of workspaces that have changed since its
 * predecessor, and names its predecessor's manifest by checksum. So an increment that is missing,
 * or belongs to another backup, is noticed.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError } from '#src/base/errors/operator-error.ts';
import { type CopiedFile, type CopiedLink, checksumOfCopy } from './file-copy.ts';
import type { Lineage } from './lineage.ts';
import { differencesFrom, isOtherName, MANIFEST_FILE, type Manifest, readManifest } from './manifest.ts';

export const INCREMENTS = 'increments';
/** The file of an increment with pages. */
export const PAGES_FILE = 'pages';

export interface IncrementManifest {
  readonly kind: 'troupe-increment';
  readonly version: 1;
  readonly createdAt: string;
  readonly release: string;
  /** The SHA-256 of the preceding manifest. */
  readonly follows: string;
  readonly lineage: Lineage;
  readonly keyIds: readonly string[];
  readonly pages: { readonly bytes: number; readonly sha256: string; readonly pageBytes: number };
  /** The size of the store with these pages. */
  readonly storeBytes: number;
  /** Only new and changed files, with their paths relative to `workspaces`. */
  readonly files: readonly CopiedFile[];
  readonly links: readonly CopiedLink[];
  readonly folders: readonly string[];
  /** Files, links and folders that were removed, or have become entries of another kind. */
  readonly removed: readonly string[];
  readonly skipped: readonly string[];
}

export interface Increment {
  readonly directory: string;
  readonly manifest: IncrementManifest;
}

export interface Chain {
  readonly directory: string;
  readonly base: Manifest;
  readonly increments: readonly Increment[];
  /** The SHA-256 of the last manifest. */
  readonly lastManifest: string;
}

/** Files, links and folders of workspaces, as they are after an increment. */
export interface FileState {
  /** Files, each with the directory of the backup or increment that has its content. */
  readonly files: Map<string, CopiedFile & { readonly from: string }>;
  readonly links: Map<string, string>;
  readonly folders: Set<string>;
}

/** Returns the name of the increment with this number, which counts from 1. */
export function incrementName(number: number): string {
  return String(number).padStart(6, '0');
}

/**
 * Returns the backup in `directory` with its increments, without those made after `until` (milliseconds since 1970).
 * Throws `OperatorError` when it is not a backup of this release, or when an increment does not follow its predecessor.
 */
export function readChain(directory: string, until = Number.POSITIVE_INFINITY): Chain {
  const base = readManifest(directory);
  let lastManifest = checksumOfManifest(directory);
  if (Date.parse(base.createdAt) > until)
    throw new OperatorError(
      `The backup ${directory} was made at ${base.createdAt}, after the time that you named.`,
      'Name an earlier backup, or a later time.',
    );
  const increments: Increment[] = [];
  const folder = join(directory, INCREMENTS);
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => /^\d{6,}$/.test(name)) : [];
  for (const [n, name] of names.sort().entries()) {
    const last = increments.at(-1)?.manifest.createdAt ?? base.createdAt;
    if (Date.parse(last) >= until) break; // the next increment may be damaged
    const place = join(folder, name);
    const manifest = readIncrement(place);
    const isNext = name === incrementName(n + 1) && manifest?.follows === lastManifest;
    if (manifest === undefined || !isNext) {
      throw new OperatorError(
        `The increment ${place} is damaged, or does not continue the increment before it.`,
        `Records stored until ${last} can be restored: troupe restore --until ${last}`,
      );
    }
    if (Date.parse(manifest.createdAt) > until) break;
    increments.push({ directory: place, manifest });
    lastManifest = checksumOfManifest(place);
  }
  return { directory, base, increments, lastManifest };
}

/** Returns the checksum with which the next increment names the manifest in `directory`. */
export function checksumOfManifest(directory: string): string {
  return createHash('sha256')
    .update(readFileSync(join(directory, MANIFEST_FILE)))
    .digest('hex');
}

function readIncrement(directory: string): IncrementManifest | undefined {
  try {
    const content = JSON.parse(readFileSync(join(directory, MANIFEST_FILE), 'utf8'));
    const isKnown = content.kind === 'troupe-increment' && content.version === 1;
    return isKnown && content.pages.pageBytes >= 512 ? content : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the files of the last state in the chain. */
export function fileStateOf({ directory, base, increments }: Chain): FileState {
  const state: FileState = { files: new Map(), links: new Map(), folders: new Set() };
  addFiles(state, directory, base);
  for (const increment of increments) addFiles(state, increment.directory, increment.manifest);
  return state;
}

/** Applies an increment to the state before it. */
export function addFiles(
  { files, links, folders }: FileState,
  from: string,
  change: Pick<IncrementManifest, 'files' | 'links' | 'folders'> & { readonly removed?: readonly string[] },
): void {
  for (const path of change.removed ?? []) {
    files.delete(path);
    links.delete(path);
    folders.delete(path);
  }
  for (const file of change.files) files.set(file.path, { ...file, from });
  for (const { path, target } of change.links) links.set(path, target);
  for (const path of change.folders) folders.add(path);
}

/** Yields the differences from the manifests of the chain, in words. Reads every file. */
export async function* differencesFromChain(chain: Chain): AsyncGenerator<string> {
  yield* differencesFrom(chain.base, chain.directory);
  for (const [n, { directory, manifest }] of chain.increments.entries()) {
    const name = join(INCREMENTS, incrementName(n + 1));
    const { bytes, sha256 } = manifest.pages;
    const found = await checksumOfCopy(join(directory, PAGES_FILE)).catch(() => undefined);
    if (found?.bytes !== bytes || found.sha256 !== sha256)
      yield `${join(name, PAGES_FILE)} is missing or has other content`;
    for (const file of manifest.files) {
      if (await isOtherName(file, join(directory, 'workspaces'))) continue;
      const copy = await checksumOfCopy(join(directory, 'workspaces', file.path)).catch(() => undefined);
      if (copy?.bytes !== file.bytes || copy.sha256 !== file.sha256)
        yield `${join(name, 'workspaces', file.path)} is missing or has other content`;
    }
  }
}
