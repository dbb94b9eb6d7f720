/** A data directory with many runs, and checks of its store while the next release converts it and after that. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SYSTEM } from '#storage/keys.ts';
import { migrationCursor } from '#storage/migrations/conversion.ts';
import { CURRENT_FORMAT } from '#storage/migrations.ts';
import { formatOf, openStore, openStoreReader } from '#storage/open-store.ts';
import { runRecords } from '#storage/records/runs.ts';
import { startServerProcess } from '#test/support/child-server.ts';
import { OWNER, pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';
import { measuredRuns, runCounts } from './next-format.ts';

/** The server as `next-format.ts` changes it: its modules instead of its bundle. */
export const NEXT_RELEASE = {
  command: ['--conditions=development', fileURLToPath(new URL('../../src/start/main.js', import.meta.url))],
  env: { NEXT_FORMAT: '1' },
} as const;

const SESSIONS = 50;
const BATCH = 5000;

const { workspaceId } = OWNER;
const idOf = (kind: string, i: number) => `${kind}_${String(i).padStart(26, '0')}`;
const sessionOf = (i: number) => idOf('nb', i % SESSIONS);

/** Makes this process the next release until the result is disposed. Servers are not changed: they get `NEXT_RELEASE`. */
export function asNextRelease(): Disposable {
  process.env.NEXT_FORMAT = '1';
  return {
    [Symbol.dispose]() {
      delete process.env.NEXT_FORMAT;
    },
  };
}

/** Fills an empty directory: a server of this release makes the identity and the keyring, then the runs are written. */
export async function writeRuns(dataDir: string, runs: number): Promise<void> {
  const server = await startServerProcess(dataDir, { ...SETTINGS, ...pythonOfTests() });
  await server.end('SIGTERM');
  await using store = await openStore(join(dataDir, 'store'), assert.fail);
  for (let first = 0; first < runs; first += BATCH) {
    store.write((tx) => {
      for (let i = first; i < Math.min(first + BATCH, runs); i++) {
        const document = Buffer.from(JSON.stringify({ id: idOf('run', i), status: 'completed' }));
        const record = { sessionId: sessionOf(i), kind: 'notebook', status: 'completed', document } as const;
        tx.put(runRecords, record, workspaceId, idOf('run', i));
      }
    });
    await store.durable();
  }
}

/** Returns how far the conversion of a store is. A server may be converting the store at this moment. */
export async function placeOfConversion(
  dataDir: string,
): Promise<{ readonly format: number; readonly done: number }> {
  const path = join(dataDir, 'store');
  await using store = await openStoreReader(path);
  return { format: formatOf(store, path) ?? 0, done: store.get(migrationCursor, SYSTEM)?.done ?? 0 };
}

/** Fails unless each run is counted exactly once, and nothing is left of the conversion. */
export async function checkConvertedStore(dataDir: string, runs: number): Promise<void> {
  const path = join(dataDir, 'store');
  await using store = await openStoreReader(path);
  assert.equal(formatOf(store, path), CURRENT_FORMAT.version);
  assert.deepEqual([...store.listKeys(migrationCursor, SYSTEM, [], 1)], []);
  assert.deepEqual([...store.listKeys(measuredRuns, workspaceId, [], 1)], []);
  const bytesOf = new Map<string, number[]>();
  for (let i = 0; i < runs; i++) {
    const bytes = store.get(runRecords, workspaceId, idOf('run', i))?.document.byteLength ?? 0;
    bytesOf.set(sessionOf(i), [...(bytesOf.get(sessionOf(i)) ?? []), bytes]);
  }
  for (const [sessionId, sizes] of bytesOf)
    assert.deepEqual(store.get(runCounts, workspaceId, sessionId), {
      runs: sizes.length,
      bytes: sizes.reduce((sum, size) => sum + size, 0),
    });
  for (const { key, problem } of store.checkAll()) assert.equal(problem, undefined, key.join('/'));
}
