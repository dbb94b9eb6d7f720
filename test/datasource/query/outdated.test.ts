import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WorkspaceId } from '#src/base/ids.ts';
import { dropInAllWorkers } from '#src/datasource/query/outdated.ts';
import { openWorkers } from '../../cluster/identity-workers.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;

test('every worker has closed its connections to a datasource before its deletion is answered', async (t) => {
  const seen: string[] = [];
  const workers = await openWorkers(t, () => 0);
  const [first, second] = workers.map(({ identity, store, cluster }, worker) => {
    const drop = (workspaceId: WorkspaceId, slug: string) =>
      seen.push(`${worker} drops ${workspaceId}/${slug}`);
    t.mock.method(store, 'refresh', () => void seen.push(`${worker} refreshes`));
    return dropInAllWorkers(drop, { store, cluster, announce: identity.announce });
  });
  assert.ok(first && second);
  second(WORKSPACE, 'sales');
  const answered = workers[1].identity.durable();
  assert.deepEqual(seen.splice(0), ['1 drops ws_1/sales']);
  await answered;
  assert.deepEqual(seen, ['0 refreshes', '0 drops ws_1/sales']);
});
