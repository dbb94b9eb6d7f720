/** Converts the store of a data directory to the format of this release without serving, or rehearses that on a copy. */
import { chmod, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import { requireStoreIn } from '#storage/disk/store-folder.ts';
import { describeProgress } from '#storage/migrations/conversion.ts';
import { CURRENT_FORMAT } from '#storage/migrations.ts';
import { formatOf, openStore, openStoreReader } from '#storage/open-store.ts';

export interface MigrateOptions {
  readonly dataDir: string;
  /** Called with a sentence every few seconds. */
  readonly onProgress: (line: string) => void;
}

export interface Migrated {
  /** The earlier format of the store, and the format of this release. */
  readonly from: number;
  readonly to: number;
  readonly records: number;
  /** Milliseconds that the conversion took. */
  readonly ms: number;
  /** Records that are damaged, one line each, 1000 at most. */
  readonly damage: readonly string[];
}

const MAX_DAMAGE_LINES = 1000;

/** Resolves once the store is converted. Rejects with `OperatorError`, also while a server uses the directory. */
export async function migrate({ dataDir, onProgress }: MigrateOptions): Promise<Migrated> {
  using directory = await DataDirectory.claim(dataDir, requireStoreIn);
  return convertAt(directory.storePath, onProgress);
}

/**
 * Rehearses the conversion on a copy of the store, and removes the copy. A server of an earlier
 * release may be using the store. The copy is made within the data directory, or in `copyIn`. The
 * disk needs space for it, and for the additions of the conversion. Rejects with `OperatorError`.
 */
export async function rehearse({
  dataDir,
  copyIn = dataDir,
  onProgress,
}: MigrateOptions & { readonly copyIn?: string | undefined }): Promise<
  Migrated & { readonly copyMs: number }
> {
  requireStoreIn(dataDir);
  const place = join(copyIn, 'rehearsal');
  try {
    using copy = await DataDirectory.claim(place);
    await rm(copy.storePath, { recursive: true, force: true }); // the copy of an interrupted rehearsal
    await mkdir(copy.storePath, { mode: 0o700 });
    const startedAt = performance.now();
    {
      await using reader = await openStoreReader(join(dataDir, 'store'));
      await reader.copyTo(copy.storePath, false);
    }
    await chmod(join(copy.storePath, 'data.mdb'), 0o600);
    const copyMs = Math.round(performance.now() - startedAt);
    return { ...(await convertAt(copy.storePath, onProgress)), copyMs };
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

async function convertAt(storePath: string, onProgress: MigrateOptions['onProgress']): Promise<Migrated> {
  const from = await formatAt(storePath);
  const startedAt = performance.now();
  let failure: Error | undefined;
  await using store = await openStore(
    storePath,
    (error) => {
      failure = error;
    },
    undefined,
    undefined,
    (progress) => onProgress(describeProgress(progress)),
  );
  const ms = Math.round(performance.now() - startedAt);
  if (failure !== undefined) throw failure;
  const damage: string[] = [];
  let records = 0;
  for (const { key, problem } of store.checkAll()) {
    records++;
    if (problem !== undefined && damage.length < MAX_DAMAGE_LINES)
      damage.push(`record ${key.join('/')}: ${problem}`);
  }
  return { from, to: CURRENT_FORMAT.version, records, ms, damage };
}

async function formatAt(storePath: string): Promise<number> {
  await using reader = await openStoreReader(storePath);
  return formatOf(reader, storePath) ?? CURRENT_FORMAT.version;
}
