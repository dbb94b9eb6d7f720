// own kernel host: it looks at the start of the host
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { childScript } from '#test/support/store/child-script.ts';

test('readyz reports a store that has not answered for ten seconds, until the store answers', async (t) => {
  const { client, dataDir } = await startServer(t, { TROUPE_WORKERS: '1' }); // the server has the clock of this process
  const holder = childScript(t, 'shared-store-process', join(dataDir, 'store'), 'hold');
  assert.equal(await holder.line(), 'holding');
  const created = client.notebooks.create();
  const warnings = async () => (await client.readiness()).warnings ?? [];
  assert.deepEqual(await warnings(), []);

  const now = performance.now.bind(performance);
  const since = now();
  const clock = t.mock.method(performance, 'now', () => since + (now() - since) * 100);
  await eventually(
    'a warning',
    async () => (await warnings()).some((text) => /^The store has not answered for \d+ s:/.test(text)),
    1_000_000,
  );
  clock.mock.restore();
  await holder.kill();
  await created;
  assert.deepEqual(await warnings(), []);
});
