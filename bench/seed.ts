/** Fills data directories as if they had been used, directly through the storage layer. */

import { Secret } from '#src/base/caller/secret.ts';
import type { EnvironmentId, NotebookId, RunId, SessionId, WorkspaceId } from '#src/base/ids.ts';
import { newId } from '#src/base/ids.ts';
import { SavedNotebooks } from '#src/notebook/saved/saved-notebooks.ts';
import { NotebookSessionPlaces } from '#src/notebook/sessions/notebook-session-places.ts';
import { bootstrap } from '#src/people/auth/bootstrap.ts';
import { Identity } from '#src/people/auth/identity.ts';
import { addToIndex } from '#src/runtime/runs/run-lists.ts';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import { openStore } from '#storage/open-store.ts';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import { runRecords } from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';

/** The workspace of the bench. */
export const WORKSPACE = 'ws_bench' as WorkspaceId;
/** The token of its owner. */
export const TOKEN = 'token-of-the-benchmark';

/** How much a directory contains. */
export interface Stock {
  readonly notebooks: number;
  /** How many of the notebooks have an open session. */
  readonly sessions: number;
  /** Number of runs in all sessions together. One in a thousand has failed. */
  readonly runs: number;
}

/** Some ids of the stored records. */
export interface Stored {
  readonly notebookIds: readonly NotebookId[];
  /** The environments of the sessions, in the order of the notebooks. */
  readonly environmentIds: readonly EnvironmentId[];
}

const AT = '2026-01-01T00:00:00.000Z';
const BATCH = 5_000;
const CELLS = Array.from({ length: 5 }, (_, i) => ({ cell_id: `c${i}`, code: `x${i} = ${i}\nx${i} + 1` }));

/** Fills an empty directory and releases it. */
export async function seed(path: string, stock: Stock): Promise<Stored> {
  const directory = await DataDirectory.claim(path);
  const store = await openStore(directory.storePath, (error) => {
    throw error;
  });
  try {
    const identity = new Identity(store);
    await bootstrap(identity, path, { token: new Secret(TOKEN), workspaceId: WORKSPACE });
    return await fill(store, stock);
  } finally {
    await store[Symbol.asyncDispose]();
    directory[Symbol.dispose]();
  }
}

async function fill(store: Store, { notebooks, sessions, runs }: Stock): Promise<Stored> {
  const saved = new SavedNotebooks(
    store,
    () => undefined,
    () => true,
  );
  const places = new NotebookSessionPlaces(store);
  const notebookIds: NotebookId[] = [];
  const environmentIds: EnvironmentId[] = [];
  await inBatches(store, notebooks, async (i) => {
    const app = { options: { app_title: `Notebook ${i}` } };
    const { document } = await saved.create(WORKSPACE, { serialization: { app, cells: CELLS } });
    notebookIds.push(document.id);
  });
  await inBatches(store, sessions, (i) => {
    environmentIds.push(putSession(store, places, notebookIds[i]!));
  });
  await inBatches(store, runs, (i) => {
    const status = i % 1000 === 0 ? 'failed' : 'completed';
    putRun(store, notebookIds[i % sessions]!, environmentIds[i % sessions]!, status);
  });
  return { notebookIds, environmentIds };
}

async function inBatches(
  store: Store,
  count: number,
  make: (index: number) => void | Promise<void>,
): Promise<void> {
  for (let i = 0; i < count; i++) {
    await make(i);
    if (i % BATCH === BATCH - 1) await store.durable();
  }
  await store.durable();
}

/** Stores a session as a server leaves it after an orderly stop. */
function putSession(store: Store, places: NotebookSessionPlaces, notebookId: NotebookId): EnvironmentId {
  const environmentId = newId<EnvironmentId>('environment');
  putActor(
    store,
    'environment',
    environmentId,
    'environment',
    { open: 'occupied' },
    {
      workspaceId: WORKSPACE,
      environmentId,
      notebookSessionId: notebookId,
      agentSessionIds: [],
    },
  );
  putActor(store, 'notebook-session', notebookId, 'notebookSession', 'dormant', {
    workspaceId: WORKSPACE,
    notebookId,
    environmentId,
    mode: 'edit',
    openedAt: AT,
    work: null,
    phases: { forkMs: 10, connectMs: 5, openMs: 9, totalMs: 24 },
    failure: null,
    earlyDeaths: 0,
  });
  places.open(WORKSPACE, notebookId, AT, null);
  return environmentId;
}

/**
 * Writes `count` more runs, in turn into the sessions of a data directory that was filled before. Their numbers begin
 * with `from`.
 */
export function putRuns(
  store: Store,
  count: number,
  notebookIds: readonly NotebookId[],
  environmentIds: readonly EnvironmentId[],
  from: number,
): void {
  for (let n = from; n < from + count; n++) {
    const session = n % environmentIds.length;
    putRun(store, notebookIds[session]!, environmentIds[session]!, 'completed');
  }
}

function putRun(
  store: Store,
  notebookId: NotebookId,
  environmentId: EnvironmentId,
  status: 'completed' | 'failed',
): void {
  const runId = newId<RunId>('run');
  const sessionId = notebookId as string as SessionId;
  const run = {
    id: runId,
    kind: 'notebook',
    sessionId,
    status,
    input: { type: 'all' },
    output: {
      stored: true,
      parts: CELLS.map(({ cell_id }) => ({
        type: 'cell-result',
        cellId: cell_id,
        status: 'success',
        outputs: [{ mimetype: 'text/html', data: '<pre>1</pre>' }],
        console: [],
        durationMs: 0.5,
      })),
    },
    error: null,
    createdAt: AT,
    startedAt: AT,
    finishedAt: AT,
  };
  store.write((tx) => {
    const document = Buffer.from(JSON.stringify(run));
    tx.put(runRecords, { sessionId, kind: 'notebook', status, document }, WORKSPACE, runId);
    addToIndex(tx, WORKSPACE, runId, { kind: 'notebook', sessionId, environmentId, status, createdAt: AT });
  });
  putActor(store, 'run', runId, 'run', status, {
    workspaceId: WORKSPACE,
    runId,
    sessionId,
    kind: 'notebook',
  });
}

function putActor(
  store: Store,
  kind: string,
  id: string,
  machine: string,
  value: unknown,
  context: unknown,
): void {
  const record = { machine, machineVersion: 1, revision: 3, value, context, createdAt: AT, updatedAt: AT };
  store.write((tx) => tx.put(actorSnapshots, record, WORKSPACE, kind, id));
}
