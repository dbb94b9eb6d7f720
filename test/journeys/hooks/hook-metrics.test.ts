/** The metrics of hooks: what was delivered, failed and died, how long it took, and how many hooks are paused. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { scrape } from '#test/support/metrics.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer, type TestServer } from '#test/support/server-fixture.ts';
import { hookReceiver } from '#test/support/stand-ins/hook-receiver.ts';

test('the metrics count deliveries by their end, failed attempts by their reason, and the time until an event arrived', async (t) => {
  const server = await startServer(t);
  const { hooks } = server.client;
  const good = await hookReceiver(t);
  const busy = await hookReceiver(t, (response) => response.writeHead(503).end());
  const gone = await hookReceiver(t, (response) => response.writeHead(410).end());
  const before = await scrape(server);
  assert.equal(before.get('troupe_hook_deliveries_total{status="dead",reason="gone"}'), 0);
  assert.equal(before.get('troupe_hooks_overdue_seconds'), 0);
  for (const { url } of [good, busy, gone]) {
    const hook = await hooks.create({ url, events: ['run.failed'] });
    await hooks.test(hook.id);
    await eventually('the first attempt is over', async () => {
      const [delivery] = (await hooks.deliveries(hook.id)).items;
      return delivery !== undefined && (delivery.finishedAt ?? delivery.reason) !== null;
    });
  }
  const metrics = await scrape(server);
  const dead = [...metrics].filter(([name, count]) => name.includes('status="dead"') && count > 0);
  assert.equal(metrics.get('troupe_hook_deliveries_total{status="delivered",reason=""}'), 1);
  assert.deepEqual(dead, [['troupe_hook_deliveries_total{status="dead",reason="gone"}', 1]]);
  assert.equal(metrics.get('troupe_hook_failures_total{reason="http_status"}'), 1);
  assert.equal(metrics.get('troupe_hook_failures_total{reason="gone"}'), 1);
  assert.equal(metrics.get('troupe_hook_delay_seconds_count'), 1);
  assert.ok(Number(metrics.get('troupe_hook_delay_seconds_sum')) < 60);
});

test('hooks that are paused by a person and by themselves are counted, also after a restart', async (t) => {
  let server = await startServer(t);
  const gone = await hookReceiver(t, (response) => response.writeHead(410).end());
  const { hooks } = server.client;
  const create = async (paused = false) =>
    (await hooks.create({ url: gone.url, events: ['run.failed'], paused })).id;
  const [idle, left, own] = [await create(true), await create(), await create()];
  assert.deepEqual(await pausedIn(server), [1, 0]);
  await hooks.test(left);
  await eventually('the hook pauses itself', async () => (await hooks.get(left)).status === 'paused');
  assert.deepEqual(await pausedIn(server), [1, 1]);
  const setPaused = async (id: string, paused: boolean) => {
    const { updatedAt: expectedUpdatedAt } = await server.client.hooks.get(id);
    await server.client.hooks.update(id, { expectedUpdatedAt, paused });
  };
  await setPaused(own, true);
  assert.deepEqual(await pausedIn(server), [2, 1]);

  server = await server.restart();
  assert.deepEqual(await pausedIn(server), [2, 1], 'after a restart');
  await setPaused(own, false);
  await setPaused(left, false);
  assert.deepEqual(await pausedIn(server), [1, 0]);
  await server.client.hooks.delete(idle);
  assert.deepEqual(await pausedIn(server), [0, 0]);
});

test('the paused hooks of a deleted workspace are no longer counted', async (t) => {
  const server = await startServer(t);
  const workspace = await server.client.workspaces.create({ name: 'Other' });
  const other = server.clientOf({ ...server.owner, workspaceId: workspace.id });
  await other.hooks.create({ url: 'http://127.0.0.1:9/', events: ['run.failed'], paused: true });
  assert.deepEqual(await pausedIn(server), [1, 0]);
  await server.client.workspaces.delete(workspace.id);
  assert.deepEqual(await pausedIn(server), [0, 0]);
  const again = await server.restart();
  assert.deepEqual(await pausedIn(again), [0, 0]);
});

/** Reads how many hooks a person has paused, and how many have paused themselves. */
async function pausedIn(server: TestServer): Promise<unknown[]> {
  const metrics = await scrape(server);
  return ['paused', 'paused_by_itself'].map((one) => metrics.get(`troupe_hooks{condition="${one}"}`));
}
