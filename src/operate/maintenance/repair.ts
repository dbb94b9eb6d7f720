/**
 * Takes damaged records out of a store one by one, so that one bad sector does not cost all changes
 * since the last backup. Each record is replaced by the record in a backup, if a backup is given and has the record, or dropped.
 * The damaged bytes are kept.
 */
import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError, systemFailure } from '#src/base/errors/operator-error.ts';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import { StoreFile } from '#storage/disk/store-file.ts';
import { requireStoreIn } from '#storage/disk/store-folder.ts';
import { type StoreKey, SYSTEM } from '#storage/keys.ts';
import { formatOf, openStore, openStoreReader, type StoreReader } from '#storage/open-store.ts';
import type { Store } from '#storage/store.ts';
import { flush } from './file-copy.ts';

export interface RepairOptions {
  readonly dataDir: string;
  /** Only these records, as `troupe verify` names them. When absent, all damaged records. */
  readonly records?: readonly string[] | undefined;
  /** A backup, whose records replace the damaged ones. */
  readonly from?: string | undefined;
}

/** A record that was damaged. */
export interface RepairedRecord {
  /** The key of the record, as `troupe verify` names it. */
  readonly record: string;
  /** The kind, ids and workspace of the record in words. */
  readonly name: string;
  readonly problem: string;
  /** Whether the record was taken from the backup. Otherwise it is lost. */
  readonly outcome: 'restored' | 'dropped';
  /** The file that has the damaged bytes. */
  readonly copy: string;
}

export interface Repaired {
  /** The folder of the damaged bytes and of `repaired.json`, which lists the records; undefined when there was no damage. */
  readonly directory: string | undefined;
  readonly records: readonly RepairedRecord[];
}

interface DamagedEntry {
  readonly key: StoreKey;
  readonly problem: string;
  readonly bytes: Uint8Array;
}

/**
 * Resolves once the repaired store is on disk; the copies of the damaged bytes are on disk before that. Rejects with
 * `OperatorError` while a server uses the directory, when pages of the file are damaged, and when a named record is
 * not damaged. Then nothing is changed.
 */
export async function repair({ dataDir, records, from }: RepairOptions): Promise<Repaired> {
  using directory = await DataDirectory.claim(dataDir, requireStoreIn);
  const { storePath, root } = directory;
  requireSoundPages(storePath);
  await using store = await openStore(storePath, () => undefined);
  const damaged = chosenOf(damagedOf(store), records);
  if (damaged.length === 0) return { directory: undefined, records: [] };
  await using backup = from === undefined ? undefined : await openBackup(from, store);
  const place = join(root, 'damaged', new Date().toISOString().replaceAll(':', '-'));
  try {
    mkdirSync(place, { recursive: true, mode: 0o700 });
    const repaired = damaged.map(({ key, problem }, n): RepairedRecord => {
      const outcome = backup?.soundBytes(key) === undefined ? 'dropped' : 'restored';
      return { record: key.join('/'), name: nameOf(key), problem, outcome, copy: `${n + 1}.bin` };
    });
    for (const [n, { bytes }] of damaged.entries()) await keep(join(place, `${n + 1}.bin`), bytes);
    await keep(join(place, 'repaired.json'), `${JSON.stringify(repaired, null, 1)}\n`);
    await flush(place);
    await flush(join(root, 'damaged'));
    store.write((tx) => {
      for (const { key } of damaged) {
        const [partition, name, ...ids] = key;
        const kind = { name, version: 0 };
        const bytes = backup?.soundBytes(key);
        if (bytes === undefined) tx.remove(kind, partition, ...ids);
        else tx.putEncoded({ kind, bytes }, partition, ...ids);
      }
    });
    await store.durable();
    return { directory: place, records: repaired };
  } catch (error) {
    throw systemFailure(`The store at ${storePath} cannot be repaired`, error);
  }
}

function requireSoundPages(storePath: string): void {
  using file = StoreFile.open(join(storePath, 'data.mdb'));
  const [first] = file.walk().damage;
  if (first === undefined) return;
  throw new OperatorError(
    `Pages of the store are damaged, not only records: ${first}.`,
    'Nothing was changed. Restore the latest backup (troupe restore).',
  );
}

function damagedOf(store: StoreReader): DamagedEntry[] {
  const damaged: DamagedEntry[] = [];
  for (const { key, problem } of store.checkAll())
    if (problem !== undefined) damaged.push({ key, problem, bytes: store.bytesOf(key) ?? new Uint8Array() });
  return damaged;
}

function chosenOf(
  damaged: readonly DamagedEntry[],
  records: readonly string[] | undefined,
): readonly DamagedEntry[] {
  if (records === undefined) return damaged;
  return records.map((record) => {
    const found = damaged.find(({ key }) => key.join('/') === record);
    if (found !== undefined) return found;
    throw new OperatorError(
      `There is no damaged record ${record}.`,
      'Nothing was changed. Use the names of records that troupe verify prints.',
    );
  });
}

/** Opens a backup whose records have the same meaning as the store's. */
async function openBackup(from: string, store: Store) {
  const path = join(from, 'store');
  const reader = await openStoreReader(path);
  const [theirs, ours] = [formatOf(reader, path), formatOf(store, 'the data directory')];
  if (theirs !== ours) {
    await reader[Symbol.asyncDispose]();
    throw new OperatorError(
      `The backup ${from} has store format ${theirs ?? 'none'}, and the store has ${ours ?? 'none'}.`,
      'Nothing was changed. Name a backup that this release has made, or repair without one.',
    );
  }
  return {
    soundBytes: (key: StoreKey) => reader.soundBytesOf(key),
    [Symbol.asyncDispose]: () => reader[Symbol.asyncDispose](),
  };
}

function nameOf([partition, kind, ...ids]: StoreKey): string {
  const owner = partition === SYSTEM ? 'the server' : `the workspace ${partition}`;
  return `${[kind.replaceAll('-', ' '), ...ids].join(' ')} of ${owner}`;
}

async function keep(path: string, content: string | Uint8Array): Promise<void> {
  await writeFile(path, content, { mode: 0o600, flush: true });
}
