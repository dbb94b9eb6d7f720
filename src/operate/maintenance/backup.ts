/**
 * Makes backups of a data directory, with or without a server that serves from it. LMDB itself
 * copies the store as of one moment, with every write that was acknowledged before. The files of workspaces are copied after it,
 * and so are the list and the authority of kernel nodes. The keyring is never part of a backup, because both together
 * reveal the credentials.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { OperatorError, systemFailure } from '#src/base/errors/operator-error.ts';
import { VERSION } from '#src/base/install/version.ts';
import { makeFolder } from '#src/base/os/make-folder.ts';
import { StoreFile } from '#storage/disk/store-file.ts';
import { SYSTEM } from '#storage/keys.ts';
import { formatOf, openStoreReader, type StoreReader } from '#storage/open-store.ts';
import { keyChecks } from '#storage/records/datasources.ts';
import { checksumOfCopy, copyTree, flush } from './file-copy.ts';
import { lineageOf } from './lineage.ts';
import { MANIFEST_FILE, type Manifest } from './manifest.ts';
import { copyNodes, type Sealing } from './nodes-copy.ts';

export interface BackupOptions {
  readonly dataDir: string;
  /** The path of the backup, which must not exist. */
  readonly to: string;
  /**
   * Leaves out free space within the store. The backup is then smaller, and takes longer to make.
   */
  readonly compact?: boolean;
  /**
   * Copies the store into a directory. A server copies its own open store; any other process opens
   * the store for reading.
   */
  readonly copyStore?: (directory: string, compact: boolean) => Promise<void>;
  /** Seals the authority of kernel nodes. Without it the authority is left out. */
  readonly sealing?: Sealing | undefined;
  /** The mark that was written into the store, so that increments can be added to the backup. */
  readonly mark?: string;
}

/** The name of the draft that an interrupted backup leaves next to its target. */
const DRAFT = /\.partial-\d+$/;

/** Returns the directory in which the backup for `to` is made. */
export function draftOf(to: string): string {
  return `${to}.partial-${process.pid}`;
}

/** Returns whether backups are made in a directory of this name. */
export function isDraft(directory: string): boolean {
  return DRAFT.test(directory);
}

/**
 * Resolves with the manifest once the backup is on disk. It appears at `to` as a whole or not at all. Rejects with
 * `OperatorError`.
 */
export async function backUp(options: BackupOptions): Promise<Manifest> {
  const { to } = options;
  if (existsSync(to))
    throw new OperatorError(
      `${to} exists already.`,
      'Name a new directory: the command makes it for the backup.',
    );
  const draft = draftOf(to);
  try {
    makeFolder(dirname(to), 0o700);
    await mkdir(draft, { mode: 0o700 });
    const manifest = await fill(draft, options);
    await rename(draft, to);
    await flush(dirname(to));
    return manifest;
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (error instanceof OperatorError) throw error;
    throw systemFailure(`The backup ${to} cannot be made`, error);
  }
}

async function fill(draft: string, options: BackupOptions): Promise<Manifest> {
  const { dataDir, mark, compact = false, copyStore = copierOf(join(dataDir, 'store')) } = options;
  const store = join(draft, 'store');
  await mkdir(store, { mode: 0o700 });
  await copyStore(store, compact);
  await using copy = await openStoreReader(store);
  const tree = await copyTree(join(dataDir, 'workspaces'), join(draft, 'workspaces'));
  const nodes = await copyNodes({ dataDir, to: draft, sealing: options.sealing });
  const file = join(store, 'data.mdb');
  await flush(file);
  const manifest: Manifest = {
    kind: 'troupe-backup',
    version: 2,
    createdAt: new Date().toISOString(),
    release: VERSION,
    store: { format: formatOf(copy, store) ?? 0, ...(await checksumOfCopy(file)) },
    keyIds: keyIdsOf(copy),
    ...tree,
    files: [...tree.files, ...nodes.files],
    skipped: [...tree.skipped, ...nodes.skipped],
    ...(mark === undefined ? {} : { lineage: lineageOf(join(dataDir, 'store'), mark, transactionOf(file)) }),
  };
  await writeManifest(draft, manifest);
  // LMDB's table of readers belongs to no backup.
  await rm(join(store, 'lock.mdb'), { force: true });
  await flush(store);
  await flush(draft);
  return manifest;
}

function transactionOf(file: string): bigint {
  using copy = StoreFile.open(file);
  const meta = copy.meta();
  if (meta === undefined) throw new OperatorError(`${file} is not a store.`, 'Check the disk of the backup.');
  return meta.transaction;
}

/** Writes the manifest into `directory`; it is on disk when this resolves. */
export async function writeManifest(directory: string, manifest: object): Promise<void> {
  const text = `${JSON.stringify(manifest, null, 1)}\n`;
  await writeFile(join(directory, MANIFEST_FILE), text, { mode: 0o600, flush: true });
}

function copierOf(path: string) {
  return async (directory: string, compact: boolean): Promise<void> => {
    await using reader = await openStoreReader(path);
    await reader.copyTo(directory, compact);
  };
}

/** Returns the ids of the keys that the store needs, including keys whose record in the store is damaged. */
export function keyIdsOf(store: Pick<StoreReader, 'listKeys'>): string[] {
  return [...store.listKeys(keyChecks, SYSTEM, [], Number.POSITIVE_INFINITY)].map(([id = '']) => id);
}
