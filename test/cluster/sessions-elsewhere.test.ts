import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SessionsElsewhere } from '#src/app/sessions-elsewhere.ts';
import { testCluster } from '#test/support/test-cluster.ts';

test('the sessions of the other workers count, and nobody is asked without a limit', async (t) => {
  for (const isLimited of [true, false]) {
    const workers = testCluster(3, () => 0);
    const [first] = workers.map((cluster) => {
      const own = () => cluster.worker * 10;
      const sessions = new SessionsElsewhere({ cluster, isLimited, own });
      t.after(() => sessions[Symbol.dispose]());
      return sessions;
    });
    await first!.refresh();
    assert.equal(first!.count, isLimited ? 30 : 0);
    assert.deepEqual(workers[1]!.asked, isLimited ? ['sessions'] : []);
  }
});
