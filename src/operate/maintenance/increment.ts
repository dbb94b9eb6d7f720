/**
 * Adds increments to a backup that a server makes of itself, and applies their pages to a copy of
 * the store.
 */

import { createHash } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '#src/base/errors/operator-error.ts';
import { VERSION } from '#src/base/install/version.ts';
import { ChangedPages, type PageRun } from '#storage/disk/changed-pages.ts';
import { StoreFile } from '#storage/disk/store-file.ts';
import type { Store } from '#storage/store.ts';
import { draftOf, keyIdsOf, writeManifest } from './backup.ts';
import {
  addFiles,
  checksumOfManifest,
  type FileState,
  fileStateOf,
  INCREMENTS,
  type Increment,
  type IncrementManifest,
  incrementName,
  PAGES_FILE,
  readChain,
} from './chain.ts';
import { type CopiedTree, copyTree, flush, sizeOf } from './file-copy.ts';
import { continues, type Lineage, lineageOf, markStore } from './lineage.ts';
import { copyNodes, type Sealing } from './nodes-copy.ts';

/** The head of each run of pages: the number of its first page (eight bytes) and their count (four bytes). */
export const RUN_HEAD_BYTES = 12;

/**
 * With more increments than this, or with more bytes than the backup itself, another backup is due.
 */
const MAX_INCREMENTS = 2_000;
const MIN_ROOM_BYTES = 64 * 1024 * 1024;

export interface ChainWriterOptions {
  /** The backup. */
  readonly directory: string;
  readonly dataDir: string;
  readonly store: Store;
  /** Seals the authority of kernel nodes, as in `BackupOptions`. */
  readonly sealing?: Sealing | undefined;
}

export interface AddedIncrement {
  readonly number: number;
  readonly pageBytes: number;
  readonly fileBytes: number;
  readonly files: number;
  readonly removed: number;
}

/**
 * Adds increments to the chain of one backup, and knows the end of the chain. A chain has one writer: an addition is
 * discarded if another writer has added something meanwhile.
 */
export class ChainWriter {
  readonly #options: ChainWriterOptions;
  readonly #files: FileState;
  #count: number;
  #lastManifest: string;
  #lineage: Lineage;
  #baseBytes: number;
  #addedBytes: number;

  private constructor(options: ChainWriterOptions, lineage: Lineage) {
    const chain = readChain(options.directory);
    const { base, increments, lastManifest } = chain;
    this.#options = options;
    this.#files = fileStateOf(chain);
    this.#count = increments.length;
    this.#lastManifest = lastManifest;
    this.#lineage = increments.at(-1)?.manifest.lineage ?? lineage;
    this.#baseBytes = base.store.bytes + sizeOf(base.files);
    this.#addedBytes = increments.reduce((sum, { manifest }) => sum + bytesOf(manifest), 0);
  }

  /** Returns the writer of a backup; undefined when no increments can be added to it, because it is damaged or `troupe backup` made it. */
  static open(options: ChainWriterOptions): ChainWriter | undefined {
    try {
      const { lineage } = readChain(options.directory).base;
      return lineage === undefined ? undefined : new ChainWriter(options, lineage);
    } catch (error) {
      if (error instanceof OperatorError) return undefined;
      throw error;
    }
  }

  /** Whether the store continues the last increment, and the limits allow another one. */
  get canGrow(): boolean {
    const room = Math.max(this.#baseBytes, MIN_ROOM_BYTES);
    return this.#count < MAX_INCREMENTS && this.#addedBytes <= room && this.isContinued;
  }

  /**
   * Whether the store continues the last increment, which means that it was neither replaced nor
   * set back.
   */
  get isContinued(): boolean {
    const { store, dataDir } = this.#options;
    return continues(store, join(dataDir, 'store'), this.#lineage);
  }

  /**
   * Adds an increment when something has changed. Resolves with the increment once it is on disk; with undefined when
   * nothing has changed. It appears as a whole or not at all.
   */
  async add(): Promise<AddedIncrement | undefined> {
    const { directory, dataDir, store } = this.#options;
    const folder = join(directory, INCREMENTS);
    const place = join(folder, incrementName(this.#count + 1));
    const draft = draftOf(place);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await mkdir(draft, { mode: 0o700 });
      const known = this.#files.files;
      const tree = await copyTree(join(dataDir, 'workspaces'), join(draft, 'workspaces'), known);
      const nodes = await copyNodes({ dataDir, to: draft, sealing: this.#options.sealing, known });
      tree.files.push(...nodes.files);
      tree.skipped.push(...nodes.skipped);
      const changes = changesOf(this.#files, tree);
      if (!hasChanges(changes) && !(await this.#isStoreChanged())) return undefined;
      const mark = await markStore(store, this.#lineage.mark);
      const manifest = await this.#fill(draft, mark, changes);
      await rename(draft, place);
      await flush(folder);
      this.#take(place, manifest);
      const { pages, files, removed } = manifest;
      const counts = { files: files.length, removed: removed.length };
      return { number: this.#count, pageBytes: pages.bytes, fileBytes: sizeOf(files), ...counts };
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }

  async #isStoreChanged(): Promise<boolean> {
    await using pages = await ChangedPages.open(join(this.#options.dataDir, 'store'));
    return Number(pages.meta.transaction) !== this.#lineage.transaction;
  }

  async #fill(draft: string, mark: string, changes: FileChanges): Promise<IncrementManifest> {
    const { dataDir, store } = this.#options;
    const storePath = join(dataDir, 'store');
    using _held = store.holdState();
    await using pages = await ChangedPages.open(storePath);
    const { transaction, pageSize, lastPage } = pages.meta;
    const written = await writePages(join(draft, PAGES_FILE), pages.since(BigInt(this.#lineage.transaction)));
    const manifest: IncrementManifest = {
      kind: 'troupe-increment',
      version: 1,
      createdAt: new Date().toISOString(),
      release: VERSION,
      follows: this.#lastManifest,
      lineage: lineageOf(storePath, mark, transaction),
      keyIds: keyIdsOf(store),
      pages: { ...written, pageBytes: pageSize },
      storeBytes: (lastPage + 1) * pageSize,
      ...changes,
    };
    await writeManifest(draft, manifest);
    await flush(draft);
    return manifest;
  }

  #take(place: string, manifest: IncrementManifest): void {
    addFiles(this.#files, place, manifest);
    this.#count++;
    this.#addedBytes += bytesOf(manifest);
    this.#lineage = manifest.lineage;
    this.#lastManifest = checksumOfManifest(place);
  }
}

type FileChanges = Pick<IncrementManifest, 'files' | 'links' | 'folders' | 'removed' | 'skipped'>;

/** Returns the changes that turn the earlier state into the tree. */
function changesOf(before: FileState, tree: CopiedTree): FileChanges {
  const files = tree.files.filter((file) => before.files.get(file.path) !== file);
  const links = tree.links.filter(({ path, target }) => before.links.get(path) !== target);
  const folders = tree.folders.filter((path) => !before.folders.has(path));
  const now = {
    files: new Set(tree.files.map(({ path }) => path)),
    links: new Set(tree.links.map(({ path }) => path)),
    folders: new Set(tree.folders),
  };
  const removed = (['files', 'links', 'folders'] as const).flatMap((kind) =>
    [...before[kind].keys()].filter((path) => !now[kind].has(path)),
  );
  return { files, links, folders, removed, skipped: tree.skipped };
}

function hasChanges({ files, links, folders, removed }: FileChanges): boolean {
  return [files, links, folders, removed].some(({ length }) => length > 0);
}

function bytesOf({ pages, files }: IncrementManifest): number {
  return pages.bytes + sizeOf(files);
}

async function writePages(
  path: string,
  runs: AsyncIterable<PageRun>,
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  await using file = await open(path, 'wx', 0o600);
  const hash = createHash('sha256');
  const waiting: Buffer[] = [];
  let [bytes, pending] = [0, 0];
  const write = async (): Promise<void> => {
    const all = Buffer.concat(waiting.splice(0));
    hash.update(all);
    await file.appendFile(all);
    bytes += all.length;
    pending = 0;
  };
  for await (const { page, bytes: content } of runs) {
    const head = Buffer.alloc(RUN_HEAD_BYTES);
    head.writeBigUInt64LE(BigInt(page));
    head.writeUInt32LE(content.length, 8);
    waiting.push(head, content);
    pending += RUN_HEAD_BYTES + content.length;
    if (pending >= WRITE_BYTES) await write();
  }
  await write();
  await file.sync();
  return { bytes, sha256: hash.digest('hex') };
}

const WRITE_BYTES = 256 * 1024;

/**
 * Applies the pages of the increments to the copy of the store in the file `path`, and flushes it.
 * Rejects with `OperatorError` when the result is not a sound store in the state of the last
 * increment.
 */
export async function applyPages(path: string, increments: readonly Increment[]): Promise<void> {
  const last = increments.at(-1);
  if (last === undefined) return;
  {
    await using file = await open(path, 'r+');
    for (const { directory, manifest } of increments) {
      const { pageBytes, bytes } = manifest.pages;
      for await (const { page, bytes: content } of readPages(join(directory, PAGES_FILE), bytes))
        for (let done = 0; done < content.length; ) {
          const { bytesWritten } = await file.write(
            content,
            done,
            content.length - done,
            page * pageBytes + done,
          );
          done += bytesWritten;
        }
    }
    if ((await file.stat()).size < last.manifest.storeBytes) await file.truncate(last.manifest.storeBytes);
    await file.sync();
  }
  using result = StoreFile.open(path);
  const { damage } = result.walk();
  const isLast = Number(result.meta()?.transaction ?? 0) === last.manifest.lineage.transaction;
  if (damage.length === 0 && isLast) return;
  throw new OperatorError(
    `The store of the increment ${last.directory} is damaged: ${damage[0] ?? 'it has another state than the increment names'}.`,
    'Restore an earlier increment (troupe restore --until), or another backup.',
  );
}

/** Yields the pages that `writePages` has written. Throws when the file is shorter. */
async function* readPages(path: string, length: number): AsyncGenerator<PageRun> {
  await using file = await open(path, 'r');
  const head = Buffer.alloc(RUN_HEAD_BYTES);
  for (let at = 0; at < length; ) {
    await file.read(head, 0, RUN_HEAD_BYTES, at);
    const bytes = Buffer.allocUnsafe(Math.min(head.readUInt32LE(8), MAX_RUN_BYTES));
    const { bytesRead } = await file.read(bytes, 0, bytes.length, at + RUN_HEAD_BYTES);
    if (bytesRead !== bytes.length || bytesRead === 0) throw new Error(`${path} ends within a page.`);
    yield { page: Number(head.readBigUInt64LE(0)), bytes };
    at += RUN_HEAD_BYTES + bytes.length;
  }
}

/** Longer than any written run of pages. */
const MAX_RUN_BYTES = 1024 * 1024;
