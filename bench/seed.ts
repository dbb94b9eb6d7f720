/** Fills data directories as if they had been used, directly through the storage layer. */
import type { NotebookId, RunId, SessionId, WorkspaceId } from '#src/core/ids.ts';
import { newId } from '#src/core/ids.ts';
import { SavedNotebooks } from '#src/notebook/saved-notebooks.ts';
import { actorSnapshots } from '#storage/actor-snapshots.ts';
import { DataDirectory } from '#storage/data-directory.ts';
import { openStore } from '#storage/open-store.ts';
import { runRecords, sessionRuns } from '#storage/runs.ts';
import type { Store } from '#storage/store.ts';

/** The workspace of the bench. */
export const WORKSPACE = 'ws_bench' as WorkspaceId;

/** How much a directory contains. */
export interface Stock {
  readonly notebooks: number;
  /** How many of the notebooks have an open session. */
  readonly sessions: number;
  /** Number of runs in all sessions together. */
  readonly runs: number;
}

const AT = '2026-01-01T00:00:00.000Z';
const BATCH = 5_000;
const CELLS = Array.from({ length: 5 }, (_, i) => ({ cell_id: `c${i}`, code: `x${i} = ${i}\nx${i} + 1` }));

/** Fills an empty directory and releases it. */
export async function seed(path: string, stock: Stock): Promise<void> {
  const directory = await DataDirectory.claim(path);
  const store = await openStore(directory.storePath, (error) => {
    throw error;
  });
  try {
    await fill(store, stock);
  } finally {
    await store[Symbol.asyncDispose]();
    directory[Symbol.dispose]();
  }
}

async function fill(store: Store, { notebooks, sessions, runs }: Stock): Promise<void> {
  const saved = new SavedNotebooks({ store, refuseWhileOpen: () => undefined, allParse: () => true });
  const ids: NotebookId[] = [];
  await inBatches(store, notebooks, async () => {
    const { document } = await saved.create(WORKSPACE, { serialization: { cells: CELLS } });
    ids.push(document.id);
  });
  await inBatches(store, sessions, (i) => putSession(store, ids[i]!));
  await inBatches(store, runs, (i) => putRun(store, ids[i % sessions]!));
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
function putSession(store: Store, notebookId: NotebookId): void {
  const environmentId = newId<string>('environment');
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
}

function putRun(store: Store, notebookId: NotebookId): void {
  const runId = newId<RunId>('run');
  const sessionId = notebookId as string as SessionId;
  const run = {
    id: runId,
    kind: 'notebook',
    sessionId,
    status: 'completed',
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
    tx.put(runRecords, { sessionId, status: 'completed', document }, WORKSPACE, runId);
    tx.put(sessionRuns, null, WORKSPACE, sessionId, runId);
  });
  putActor(store, 'run', runId, 'run', 'completed', {
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
