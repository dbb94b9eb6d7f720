/** Jobs at the limits of a server: the number of jobs, and sessions that are all in use. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test, { TROUPE_WORKSPACE_MAX_JOBS: '2', TROUPE_MAX_SESSIONS: '1' });
const { client } = server;
const { jobs, notebooks } = client;

const schedule = { cron: '0 7 1 1 *' };

test('a workspace has as many jobs as its limit allows and no more', async () => {
  const target = { notebookId: await notebookOf('1') };
  const first = await jobs.create({ target, schedule });
  const second = await jobs.create({ target, schedule });
  assert.equal(await refusalOf(jobs.create({ target, schedule })), '429 quota_exceeded');
  await jobs.delete(first.id);
  const third = await jobs.create({ target, schedule });
  assert.equal(await refusalOf(jobs.create({ target, schedule })), '429 quota_exceeded');
  for (const { id } of [second, third]) await jobs.delete(id);
});

test('an occurrence waits while all sessions are in use, says why, and runs once there is room', async () => {
  const person = await openNotebook(server, { a: '1' });
  const job = await jobs.create({ target: { notebookId: await notebookOf('2') }, schedule, retries: 0 });
  const { id } = await jobs.run(job.id);
  const occurrence = async () => (await jobs.occurrences(job.id)).items.find((item) => item.id === id);
  const waiting = await eventually('the occurrence waits', async () => {
    const now = await occurrence();
    return now?.reason === null ? undefined : now;
  });
  assert.deepEqual([waiting?.status, waiting?.reason?.code], ['due', 'at_capacity']);
  await person.close();
  const over = await eventually('the occurrence is over', async () => {
    const now = await occurrence();
    return now?.finishedAt === null ? undefined : now;
  });
  assert.deepEqual([over?.status, over?.reason, over?.attempts], ['completed', null, 1]);
  await jobs.delete(job.id);
});

async function notebookOf(code: string): Promise<string> {
  return (await notebooks.create({ serialization: { cells: [{ cell_id: 'c', code }] } })).id;
}
