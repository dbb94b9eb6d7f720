import assert from 'node:assert/strict';
import test from 'node:test';
import { SYSTEM } from '#storage/keys.ts';
import { idAt } from '#storage/lists/places.ts';
import { CURRENT_FORMAT } from '#storage/migrations.ts';
import { openStore } from '#storage/open-store.ts';
import { userWorkspaces } from '#storage/records/identity.ts';
import { endPlaces, runIndex, runRecords, userRuns } from '#storage/records/runs.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const FORMAT_6 = { version: 6, migrations: CURRENT_FORMAT.migrations.slice(0, 5) };
/** More runs than one commit converts. */
const COUNT = 4_500;
const ALL = { limit: Number.POSITIVE_INFINITY };

const runId = (i: number) => `run_${String(i).padStart(26, '0')}`;

test('runs of a store of format 6 are listed by their users and in the order of their ends', async (t) => {
  const path = temporaryDirectory(t);
  const old = await openStore(path, assert.fail, FORMAT_6);
  old.write((tx) => {
    tx.put(userWorkspaces, null, SYSTEM, 'ada', 'ws_1');
    const add = (i: number, members: object, status = 'completed') => {
      const createdAt = new Date(Date.UTC(2030, 0, 1) + i).toISOString();
      const document = Buffer.from(JSON.stringify({ id: runId(i), status, createdAt, ...members }));
      tx.put(runRecords, { sessionId: 'nb_1', status, document }, 'ws_1', runId(i));
      const entry = { kind: 'notebook', sessionId: 'nb_1', environmentId: null, status, createdAt } as const;
      tx.put(runIndex, entry, 'ws_1', runId(i));
    };
    for (let i = 0; i < COUNT; i++)
      add(i, {
        createdBy: i % 2 === 0 ? 'ada' : 'bob',
        finishedAt: new Date(Date.UTC(2031, 0, 1) - i).toISOString(),
      });
    add(COUNT, { createdBy: 'bob', finishedAt: null }, 'running');
    add(COUNT + 1, { finishedAt: '2032-01-01T00:00:00.000Z' });
  });
  await old[Symbol.asyncDispose]();
  await using store = await openStore(path, assert.fail);
  const ends = [...store.list(endPlaces, 'ws_1', [], ALL)].map(({ id }) => idAt(id));
  assert.equal(ends.length, COUNT + 1);
  assert.deepEqual([ends[0], ends[COUNT - 1], ends[COUNT]], [runId(COUNT - 1), runId(0), runId(COUNT + 1)]);
  const of = (userId: string) => [...store.list(userRuns, 'ws_1', [userId], ALL)].map(({ id }) => id);
  assert.equal(of('ada').length, COUNT / 2);
  assert.deepEqual([of('bob').length, of('bob').at(-1)], [COUNT / 2 + 1, runId(COUNT)]);
  const { createdBy, finishedAt } = store.get(runIndex, 'ws_1', runId(1)) ?? {};
  assert.deepEqual([createdBy, finishedAt], ['bob', '2030-12-31T23:59:59.999Z']);
});
