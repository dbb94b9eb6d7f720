/** A data directory whose store has format 1 and many runs, as the first release would have left it. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { defineRecord } from '#storage/codec.ts';
import { SYSTEM } from '#storage/keys.ts';
import { migrationCursor } from '#storage/migrations/conversion.ts';
import { openStore, openStoreReader } from '#storage/open-store.ts';
import { assetRecords } from '#storage/records/assets.ts';
import { blobUses } from '#storage/records/blobs.ts';
import { userWorkspaces } from '#storage/records/identity.ts';
import { endedRuns, endPlaces, runIndex, runRecords, statusRuns, userRuns } from '#storage/records/runs.ts';
import { startServerProcess } from '#test/support/child-server.ts';
import { OWNER, pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';

const formatRecord = defineRecord<{ readonly version: number }>('format', 1);
const oldBlobs = defineRecord<Uint8Array>('blob', 1);
const oldUses = defineRecord<number>('blob-uses', 1);
const oldAssets = defineRecord<object>('asset', 2);
const SESSIONS = 50;
/** One in this many runs has an asset, and every second asset has the bytes of the previous one. */
const RUNS_FOR_AN_ASSET = 10;
const BATCH = 5000;

const { workspaceId } = OWNER;
const idOf = (kind: string, i: number) => `${kind}_${String(i).padStart(26, '0')}`;
const sessionOf = (i: number) => idOf('nb', i % SESSIONS);
const hashOf = (i: number) => String(i - (i % (2 * RUNS_FOR_AN_ASSET))).padStart(64, '0');

/** Fills an empty directory: a server makes the identity and the keyring, then the runs are written and the format is set back. */
export async function writeOldStore(dataDir: string, runs: number): Promise<void> {
  const server = await startServerProcess(dataDir, { ...SETTINGS, ...pythonOfTests() });
  await server.end('SIGTERM');
  const store = await openStore(join(dataDir, 'store'), assert.fail);
  for (let first = 0; first < runs; first += BATCH) {
    store.write((tx) => {
      for (let i = first; i < Math.min(first + BATCH, runs); i++) {
        const at = '2030-01-03T00:00:00.000Z';
        const members = { status: 'completed', createdAt: at, finishedAt: at, createdBy: 'ada' };
        const document = { id: idOf('run', i), ...members };
        const record = {
          sessionId: sessionOf(i),
          status: 'completed',
          document: Buffer.from(JSON.stringify(document)),
        };
        tx.put(runRecords, record, workspaceId, idOf('run', i));
        if (i % RUNS_FOR_AN_ASSET > 0) continue;
        tx.put(
          oldAssets,
          { mimetype: 'text/plain', sha256: hashOf(i) },
          workspaceId,
          idOf('run', i),
          'asset_1',
        );
        tx.put(oldBlobs, Buffer.from(`bytes of ${hashOf(i)}`), workspaceId, hashOf(i));
        tx.put(oldUses, 2, workspaceId, hashOf(i));
      }
    });
    await store.durable();
  }
  assert.ok([...store.listKeys(userWorkspaces, SYSTEM, [], 10)].length > 0, 'a workspace has a member');
  await store[Symbol.asyncDispose]();
  await setFormat(dataDir, 1);
}

/** Changes the format number of a store. */
export async function setFormat(dataDir: string, version: number): Promise<void> {
  const present = { version: (await placeOfConversion(dataDir)).format, migrations: [] };
  const store = await openStore(join(dataDir, 'store'), assert.fail, present);
  store.write((tx) => tx.put(formatRecord, { version }, SYSTEM));
  await store[Symbol.asyncDispose]();
}

/**
 * Returns a text that becomes longer as the conversion of a store progresses. A server may be
 * converting it at this moment.
 */
export async function placeOfConversion(
  dataDir: string,
): Promise<{ readonly format: number; readonly done: number }> {
  await using store = await openStoreReader(join(dataDir, 'store'));
  const format = store.get(formatRecord, SYSTEM)?.version ?? 0;
  return { format, done: store.get(migrationCursor, SYSTEM)?.done ?? 0 };
}

/** Fails unless every run is in every index, and every asset has its bytes and is counted once. */
export async function checkConvertedStore(dataDir: string, runs: number): Promise<void> {
  await using store = await openStoreReader(join(dataDir, 'store'));
  const count = (kind: Parameters<typeof store.listKeys>[0], partition = workspaceId) =>
    [...store.listKeys(kind, partition, [], Number.POSITIVE_INFINITY)].length;
  for (const kind of [runRecords, runIndex, statusRuns, endedRuns, userRuns, endPlaces])
    assert.equal(count(kind), runs, kind.name);
  for (const kind of [oldBlobs, oldUses, defineRecord('counted-use', 1)])
    assert.equal(count(kind), 0, kind.name);
  assert.equal(count(migrationCursor, SYSTEM), 0);
  const assets = Math.ceil(runs / RUNS_FOR_AN_ASSET);
  assert.equal(count(assetRecords), assets);
  let uses = 0;
  for (const [sessionId = '', sha256 = ''] of store.listKeys(
    blobUses,
    workspaceId,
    [],
    Number.POSITIVE_INFINITY,
  ))
    uses += store.get(blobUses, workspaceId, sessionId, sha256) ?? 0;
  assert.equal(uses, assets);
  for (const { key, problem } of store.checkAll()) assert.equal(problem, undefined, key.join('/'));
}
