import assert from 'node:assert/strict';
import test from 'node:test';
import type { RecordKind } from '#storage/codec.ts';
import { defineRecord } from '#storage/codec.ts';
import { SYSTEM } from '#storage/keys.ts';
import { openStore } from '#storage/open-store.ts';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import { userWorkspaces } from '#storage/records/identity.ts';
import { notebookRecords, notebookSummaries } from '#storage/records/notebooks.ts';
import { endedRuns, environmentRuns, runIndex, runRecords, statusRuns } from '#storage/records/runs.ts';
import { openEnvironments, openSessionPlaces, sessionPlaces } from '#storage/records/sessions.ts';
import type { Store } from '#storage/store.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const FORMAT_1 = { version: 1, migrations: [] };
const oldNotebooks = defineRecord<{ updatedAt: string; summary: Uint8Array; document: Uint8Array }>(
  'notebook',
  1,
);
const WORKSPACES = ['ws_1', 'ws_2'];
const RUNS = 250; // more than one batch
const OPENED = '2030-01-02T00:00:00.000Z';

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));
const json = (value: Uint8Array | undefined) => JSON.parse(Buffer.from(value ?? []).toString());

function writeOld(store: Store, workspaceId: string): void {
  store.write((tx) => {
    tx.put(userWorkspaces, null, SYSTEM, 'ada', workspaceId);
    const actor = (kind: string, id: string, value: unknown, context: unknown) => {
      const times = { createdAt: OPENED, updatedAt: OPENED };
      tx.put(
        actorSnapshots,
        { machine: kind, machineVersion: 1, revision: 1, value, context, ...times },
        workspaceId,
        kind,
        id,
      );
    };
    actor('environment', 'env_1', { open: 'occupied' }, {});
    actor('environment', 'env_2', 'closed', {});
    actor('notebook-session', 'nb_1', { live: 'ready' }, { openedAt: OPENED, environmentId: 'env_1' });
    actor('notebook-session', 'nb_2', 'closed', { openedAt: OPENED, environmentId: 'env_2' });
    actor('notebook-session', 'nb_3', 'closed', { openedAt: null, environmentId: null });
    for (let i = 0; i < RUNS; i++) {
      const createdAt = i === 0 ? '2030-01-01T00:00:00.000Z' : '2030-01-03T00:00:00.000Z';
      const status = i === 1 ? 'failed' : 'completed';
      const document = bytes({ id: runId(i), createdAt, status });
      tx.put(runRecords, { sessionId: 'nb_1', status, document }, workspaceId, runId(i));
    }
    for (const [id, options] of [
      ['nb_1', { app_title: 'Sales' }],
      ['nb_2', {}],
    ] as const) {
      const serialization = { app: { options }, cells: [{ cell_id: 'a', code: '1', options: {} }] };
      const document = bytes({
        id,
        createdAt: OPENED,
        updatedAt: OPENED,
        serialization,
        datasourceSlugs: ['x'],
        variables: {},
      });
      tx.put(oldNotebooks, { updatedAt: OPENED, summary: bytes({}), document }, workspaceId, id);
    }
  });
}

const runId = (i: number) => `run_${String(i).padStart(26, '0')}`;

test('a store of the first format gets indexes for its lists and titles for its notebooks', async (t) => {
  const path = temporaryDirectory(t);
  const old = await openStore(path, assert.fail, FORMAT_1);
  for (const workspaceId of WORKSPACES) writeOld(old, workspaceId);
  await old[Symbol.asyncDispose]();

  const store = await openStore(path, assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  for (const workspaceId of WORKSPACES) {
    const ids = (kind: RecordKind<unknown>, ...prefix: string[]) =>
      [...store.listKeys(kind, workspaceId, prefix, 1000)].map((key) => key.at(-1));
    assert.deepEqual(ids(openEnvironments), ['env_1']);
    assert.deepEqual(
      ids(sessionPlaces).map((place) => place?.slice(10)),
      ['nb_1', 'nb_2'],
    );
    assert.deepEqual(
      ids(openSessionPlaces).map((place) => place?.slice(10)),
      ['nb_1'],
    );
    assert.equal(ids(runIndex).length, RUNS);
    assert.deepEqual(store.get(runIndex, workspaceId, runId(2)), {
      kind: 'notebook',
      sessionId: 'nb_1',
      environmentId: 'env_1',
      status: 'completed',
      createdAt: '2030-01-03T00:00:00.000Z',
    });
    assert.equal(
      store.get(runIndex, workspaceId, runId(0))?.environmentId,
      null,
      'its session was opened later',
    );
    assert.deepEqual(ids(statusRuns, 'failed'), [runId(1)]);
    assert.deepEqual(ids(endedRuns, 'notebook', 'nb_1', 'failed'), [runId(1)]);
    assert.equal(ids(endedRuns).length, RUNS);
    assert.equal(ids(environmentRuns, 'env_1').length, RUNS - 1);
    const summary = store.get(notebookSummaries, workspaceId, 'nb_1');
    assert.deepEqual(
      [summary?.title, json(summary?.summary)],
      [
        'Sales',
        {
          id: 'nb_1',
          title: 'Sales',
          cellCount: 1,
          datasourceSlugs: ['x'],
          createdAt: OPENED,
          updatedAt: OPENED,
        },
      ],
    );
    const titles = ['nb_1', 'nb_2'].map(
      (id) => json(store.get(notebookRecords, workspaceId, id)?.document).title,
    );
    assert.deepEqual(titles, ['Sales', null]);
    assert.deepEqual(Object.keys(store.get(notebookRecords, workspaceId, 'nb_1') ?? {}), [
      'updatedAt',
      'document',
    ]);
  }
});
