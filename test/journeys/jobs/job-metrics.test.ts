/** The metrics of jobs: what fired, ended and was skipped, and how many jobs fail or are paused. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { scrape } from '#test/support/metrics.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const YEARLY = { cron: '0 7 1 1 *' };

test('the metrics count firings, ends and skips, and jobs that fail or are paused, also after a restart', async (t) => {
  let server = await startServer(t);
  const jobOf = async (code: string, more: object = {}) => {
    const serialization = { cells: [{ cell_id: 'c0', code }] };
    const { id: notebookId } = await server.client.notebooks.create({ serialization });
    return (await server.client.jobs.create({ target: { notebookId }, schedule: YEARLY, ...more })).id;
  };
  const fire = async (id: string) => {
    const fired = await server.client.jobs.run(id);
    await eventually('the occurrence is over', async () => {
      const { items } = await server.client.jobs.occurrences(id, { order: 'desc' });
      return items.find((one) => one.id === fired.id)?.finishedAt != null;
    });
  };
  const conditions = async () => {
    const metrics = await scrape(server);
    return ['failing', 'paused', 'paused_by_itself'].map((one) =>
      metrics.get(`troupe_jobs{condition="${one}"}`),
    );
  };
  assert.deepEqual(await conditions(), [0, 0, 0]);
  const good = await jobOf('1');
  const bad = await jobOf('1 / 0');
  const idle = await jobOf('1', { paused: true });
  await fire(good);
  await fire(bad);
  assert.deepEqual(await conditions(), [1, 1, 0]);
  for (let i = 0; i < 4; i++) await fire(bad);
  assert.deepEqual(await conditions(), [0, 1, 1]);
  const metrics = await scrape(server);
  assert.equal(metrics.get('troupe_job_firings_total{trigger="person"}'), 6);
  assert.equal(metrics.get('troupe_job_ends_total{status="completed"}'), 1);
  assert.equal(metrics.get('troupe_job_ends_total{status="failed"}'), 5);
  assert.equal(metrics.get('troupe_jobs_overdue_seconds'), 0);

  server = await server.restart();
  assert.deepEqual(await conditions(), [0, 1, 1], 'after a restart');
  const { updatedAt: expectedUpdatedAt } = await server.client.jobs.get(bad);
  await server.client.jobs.update(bad, { expectedUpdatedAt, paused: false });
  assert.deepEqual(await conditions(), [0, 1, 0]);
  await server.client.jobs.delete(idle);
  assert.deepEqual(await conditions(), [0, 0, 0]);
});

test('a job counts as failing until it succeeds, also when a person fires it and it has no further instant', async (t) => {
  const server = await startServer(t);
  const { jobs, notebooks } = server.client;
  const code = 'open("there").read()';
  const { id: notebookId } = await notebooks.create({ serialization: { cells: [{ cell_id: 'c0', code }] } });
  const at = new Date(Date.now() + 1000).toISOString();
  const { id } = await jobs.create({ target: { notebookId }, schedule: { at } });
  const over = (status: string) =>
    eventually(`an occurrence is ${status}`, async () => {
      const { items } = await jobs.occurrences(id, { order: 'desc' });
      return items[0]?.status === status;
    });
  const failing = async () => (await scrape(server)).get('troupe_jobs{condition="failing"}');
  await over('failed');
  assert.equal((await jobs.get(id)).status, 'ended');
  assert.equal(await failing(), 1);
  await server.client.files.put('there', Buffer.from('now'));
  await jobs.run(id);
  await over('completed');
  assert.equal(await failing(), 0);
});

test('an instant of a schedule is counted with its lateness, and a skipped one with its reason', async (t) => {
  const server = await startServer(t);
  const { jobs, notebooks } = server.client;
  const code = 'import time; time.sleep(600)';
  const { id: notebookId } = await notebooks.create({ serialization: { cells: [{ cell_id: 'c0', code }] } });
  const job = await jobs.create({ target: { notebookId }, schedule: { everyS: 1 } });
  const metrics = await eventually('an instant was skipped', async () => {
    const now = await scrape(server);
    return (now.get('troupe_job_skips_total{reason="overlap"}') ?? 0) > 0 ? now : undefined;
  });
  assert.equal(metrics.get('troupe_job_firings_total{trigger="schedule"}'), 1);
  assert.equal(metrics.get('troupe_job_lateness_seconds_count'), 1);
  const { updatedAt: expectedUpdatedAt } = await jobs.get(job.id);
  await jobs.update(job.id, { expectedUpdatedAt, paused: true });
});

test('the paused jobs of a deleted workspace are no longer counted', async (t) => {
  const server = await startServer(t);
  const { client } = server;
  const workspace = await client.workspaces.create({ name: 'Other' });
  const other = server.clientOf({ ...server.owner, workspaceId: workspace.id });
  const { id: notebookId } = await other.notebooks.create({});
  await other.jobs.create({ target: { notebookId }, schedule: YEARLY, paused: true });
  const paused = async () => (await scrape(server)).get('troupe_jobs{condition="paused"}');
  assert.equal(await paused(), 1);
  await client.workspaces.delete(workspace.id);
  assert.equal(await paused(), 0);
  const again = await server.restart();
  assert.equal((await scrape(again)).get('troupe_jobs{condition="paused"}'), 0);
});
