import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ALONE } from '#src/cluster/cluster.ts';
import type { WorkspaceId } from '#src/core/ids.ts';
import { dropInAllWorkers } from '#src/datasource/query/outdated.ts';
import { testCluster } from '#test/support/test-cluster.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;

test('every worker drops what it keeps of a datasource, the others once the change is committed', async () => {
  const dropped: string[] = [];
  let commit: () => void = assert.fail;
  const committed = new Promise<void>((resolve) => {
    commit = resolve;
  });
  const workers = testCluster(3, () => 0).map((cluster, worker) =>
    dropInAllWorkers((workspaceId, slug) => void dropped.push(`${worker} ${workspaceId} ${slug}`), cluster, {
      durable: () => committed,
    }),
  );
  workers[1]!(WORKSPACE, 'sales');
  await Promise.resolve();
  assert.deepEqual(dropped, ['1 ws_1 sales']);
  commit();
  await new Promise(setImmediate);
  assert.deepEqual(dropped.sort(), ['0 ws_1 sales', '1 ws_1 sales', '2 ws_1 sales']);
});

test('a server of one process waits for nothing', () => {
  const dropped: string[] = [];
  const durable = () => assert.fail('there is nobody to tell');
  dropInAllWorkers((_, slug) => void dropped.push(slug), ALONE, { durable })(WORKSPACE, 'sales');
  assert.deepEqual(dropped, ['sales']);
});
