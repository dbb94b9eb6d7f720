/** Reports of jobs: their size, and the occurrences that have one. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import { type JobId, newId, type OccurrenceId, type WorkspaceId } from '#src/base/ids.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import type { Occurrence } from '#src/contract/wire/job.ts';
import { JobStates } from '#src/jobs/job-states.ts';
import { MAX_REPORT_BYTES, Reports } from '#src/jobs/reports.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import { assetRecords } from '#storage/records/assets.ts';
import { jobRecords } from '#storage/records/jobs.ts';
import { rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;

test('a report of 16 MiB is kept, and one that is a byte larger is not, with the reason', async (t) => {
  assert.deepEqual(await reported(t, { bytes: MAX_REPORT_BYTES }), { hasUrl: true, reason: null, assets: 1 });
  assert.deepEqual(await reported(t, { bytes: MAX_REPORT_BYTES + 1 }), {
    hasUrl: false,
    reason: 'report_too_large',
    assets: 0,
  });
});

test('a report that cannot be made is logged once, and the occurrence says so', async (t) => {
  const broken = { bytes: -1 };
  assert.deepEqual(await reported(t, broken), { hasUrl: false, reason: 'internal', assets: 0 });
});

test('a report is made once the kernel host is up, and a server that ends before leaves it to the next one', async (t) => {
  assert.deepEqual(await reported(t, { refusals: 1 }), { hasUrl: true, reason: null, assets: 1 });
  assert.deepEqual(await reported(t, { refusals: 1, isEnding: true }), {
    hasUrl: false,
    reason: undefined,
    assets: 0,
  });
});

test('an occurrence has a report only after a run that has completed or failed, and of its last attempt', async (t) => {
  const none = { hasUrl: false, reason: undefined, assets: 0 };
  assert.deepEqual(await reported(t, { status: 'cancelled' }), none);
  assert.deepEqual(await reported(t, { status: 'backing-off' }), none);
  assert.deepEqual(await reported(t, { attempts: 2 }), none);
  assert.deepEqual(await reported(t, { outputs: [] }), none);
  assert.deepEqual(await reported(t, { status: 'failed' }), { hasUrl: true, reason: null, assets: 1 });
});

interface Case {
  /** The size of the page; negative when the export fails. */
  readonly bytes?: number;
  readonly status?: Occurrence['status'];
  readonly attempts?: number;
  readonly outputs?: readonly 'html'[];
  /** How often the page is refused, because the kernel host is starting. */
  readonly refusals?: number;
  readonly isEnding?: boolean;
}

async function reported(
  t: TestContext,
  {
    bytes = 10,
    status = 'completed',
    attempts = 1,
    outputs = ['html'],
    refusals = 0,
    isEnding = false,
  }: Case,
) {
  const { store } = await temporaryStore(t);
  const { log } = rememberingLog();
  const states = new JobStates({
    store,
    runtime: new ActorRuntime(store, log),
    metrics: new ServerMetrics(),
    cluster: ALONE,
  });
  const job = { workspaceId: WORKSPACE, id: newId<JobId>('job') };
  const occurrenceId = newId<OccurrenceId>('occurrence');
  const definition = { target: { notebookId: 'nb_1' }, outputs };
  store.write((tx) => {
    const record = {
      homeId: 'nb_1',
      ownerId: 'ada',
      readsDatasources: false,
      createdAt: '',
      updatedAt: '',
      definition: Buffer.from(JSON.stringify(definition)),
    };
    tx.put(jobRecords, record, WORKSPACE, job.id);
    states.addOccurrences(tx, job, [
      {
        id: occurrenceId,
        jobId: job.id,
        trigger: 'schedule',
        dueAt: '',
        status,
        reason: null,
        attempts,
        runId: 'run_1',
        startedAt: null,
        finishedAt: null,
      },
    ]);
  });
  const reader = { exists: () => true };
  let refused = 0;
  const reports = new Reports({ store, log, runs: { reader } }, states, {
    files: {
      async export() {
        if (refused++ < refusals) throw new AppError('unavailable', 'It is starting.');
        if (bytes < 0) throw new Error('broken');
        return { name: 'a.html', content: new Uint8Array(bytes) };
      },
    },
    assetUrl: () => undefined,
    pathOf: (runId, assetId) => `/${runId}/${assetId}`,
    isEnding: () => isEnding,
  });
  assert.equal(await reports.keep(job, occurrenceId, 1, 'nb_2'), !isEnding);
  await store.durable();
  const report = states.occurrence(job, occurrenceId)?.report;
  const assets = [...store.listKeys(assetRecords, WORKSPACE, ['run_1'], 10)].length;
  return { hasUrl: report?.url != null, reason: report && (report.reason?.code ?? null), assets };
}
