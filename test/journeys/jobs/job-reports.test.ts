/** Reports of jobs: the page of the notebook after a run, which is an asset of the run. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { NewJob, Occurrence } from '#src/contract/wire/job.ts';
import { eventually } from '#test/support/processes.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;
const { jobs, notebooks, runs } = client;

const schedule = { cron: '0 7 1 1 *' };

test('a report shows the outputs of the run, is sent as a download, and is deleted with the run', async () => {
  const { occurrence } = await fired({
    target: { notebookId: await notebookOf('"the answer is " + str(6 * 7)') },
  });
  assert.deepEqual([occurrence.status, occurrence.report?.reason], ['completed', null]);
  const url = occurrence.report?.url ?? '';
  const page = await server.request('GET', url);
  assert.equal(page.status, 200);
  assert.match(String(page.body), /<html[\s\S]*the answer is 42/);
  assert.match(String(page.headers['content-disposition']), /^attachment/);
  assert.match(String(page.headers['content-security-policy']), /sandbox/);
  await eventually('the copy is gone', async () =>
    (await notebooks.list()).items.every(({ metadata }) => metadata?.job === undefined),
  );
  assert.equal((await server.request('GET', url)).status, 200, 'the report outlives the copy');
  await runs.delete(occurrence.runId ?? '');
  await eventually('the report is gone', async () => (await server.request('GET', url)).status === 404);
});

test('a failed run has a report, too', async () => {
  const { occurrence } = await fired({ target: { notebookId: await notebookOf('1 / 0') } });
  assert.equal(occurrence.status, 'failed');
  const page = await server.request('GET', occurrence.report?.url ?? '');
  assert.match(String(page.body), /ZeroDivisionError|division by zero/);
});

test('only a job on a session of its own can keep reports', async () => {
  const target = { notebookId: await notebookOf('1'), session: 'open' } as const;
  assert.equal(await refusalOf(jobs.create({ target, schedule, outputs: ['html'] })), '400 invalid_request');
});

async function notebookOf(code: string): Promise<string> {
  return (await notebooks.create({ serialization: { cells: [{ cell_id: 'c', code }] } })).id;
}

async function fired(job: Pick<NewJob, 'target'>): Promise<{ readonly occurrence: Occurrence }> {
  const { id: jobId } = await jobs.create({ schedule, outputs: ['html'], ...job });
  const { id } = await jobs.run(jobId);
  const occurrence = await eventually('the occurrence has its report', async () => {
    const found = (await jobs.occurrences(jobId)).items.find((item) => item.id === id);
    return found?.report === undefined ? undefined : found;
  });
  return { occurrence };
}
