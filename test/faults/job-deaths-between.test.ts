/** Jobs of real servers that are killed between two steps: in the line, during a cancellation, and before the report of a run. */
// tier: whole, because it kills servers and workers
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import type { FaultPoint } from '#src/base/fault-points.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { NewJob, Occurrence } from '#src/contract/wire/job.ts';
import { eventually, workersOf } from '#test/support/processes.ts';
import { isGone, occurrencesOf, requireEachInstant, requireRuns, unlessCut } from './job-facts.ts';
import { Victim } from './victim.ts';

/** A schedule that does not fire during a test. */
const YEARLY = { cron: '0 7 1 1 *' };
/** The interval of a job with a schedule. */
const EVERY_MS = 1000;
/** Code that goes on when it is interrupted, so that its cancellation takes a while. */
const STUBBORN = [
  'import time',
  'while True:',
  '    try:',
  '        time.sleep(600)',
  '    except KeyboardInterrupt:',
  '        pass',
].join('\n');

/** A server on a data directory of its own, with one notebook. */
class Mortal {
  server: Victim;
  readonly notebookId: string;
  readonly #start: () => Promise<Victim>;
  readonly #points: string;
  readonly #workers: number;

  private constructor(start: () => Promise<Victim>, server: Victim, notebookId: string, place: Place) {
    this.#start = start;
    this.server = server;
    this.notebookId = notebookId;
    this.#points = place.points;
    this.#workers = place.workers;
  }

  static async start(
    t: TestContext,
    workers: number,
    code: string,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<Mortal> {
    const folders = ['data', 'points'].map((name) => mkdtempSync(join(tmpdir(), `troupe-job-${name}-`)));
    const [dataDir = '', points = ''] = folders;
    t.after(() => {
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    });
    const environment = { TROUPE_WORKERS: String(workers), FAULT_FOLDER: points, ...settings };
    const start = () => Victim.start(dataDir, undefined, environment);
    const server = await start();
    const serialization = { cells: [{ cell_id: 'c', code }] };
    const { id } = await server.client.notebooks.create({ serialization });
    const mortal = new Mortal(start, server, id, { points, workers });
    t.after(async () => {
      mortal.server.end('SIGKILL');
      await mortal.server.over();
    });
    return mortal;
  }

  get client(): Client {
    return this.server.client;
  }

  job(rest: Partial<NewJob> = {}) {
    const target = { notebookId: this.notebookId };
    return this.client.jobs.create({ target, schedule: YEARLY, retries: 0, ...rest });
  }

  /** Gives the notebook other code, which the next run of a job has. */
  async write(code: string): Promise<void> {
    const { updatedAt: expectedUpdatedAt } = await this.client.notebooks.get(this.notebookId);
    const serialization = { cells: [{ cell_id: 'c', code }] };
    await this.client.notebooks.update(this.notebookId, { expectedUpdatedAt, serialization });
  }

  /** Kills the whole server, and starts it again. */
  async kill(): Promise<void> {
    this.server.end('SIGKILL');
    await this.server.over();
    this.server = await this.#start();
  }

  /** Kills the process that reaches the point next, after `act`, and waits until the server is whole again. */
  async killAt(point: FaultPoint, act: () => Promise<unknown>): Promise<void> {
    const alive = workersOf(this.server.pid);
    writeFileSync(join(this.#points, point), '');
    await unlessCut(act());
    await eventually(`somebody has died at ${point}`, () => this.server.isOver || alive.some(isGone));
    rmSync(join(this.#points, point), { force: true });
    if (this.#workers === 1) {
      await this.server.over();
      this.server = await this.#start();
    }
    await eventually('all workers serve', async () => {
      const shown = await unlessCut(this.client.server());
      return shown !== undefined && (this.#workers === 1 || shown.workers?.length === this.#workers);
    });
  }

  /** Resolves with the only occurrence of a job once it is over. */
  whenOver(jobId: string): Promise<Occurrence> {
    return eventually('the occurrence is over', async () => {
      const [only, ...others] = (await unlessCut(occurrencesOf(this.client, jobId))) ?? [];
      assert.deepEqual(others, []);
      return only?.finishedAt != null ? only : undefined;
    });
  }

  /** Resolves once no copy of the notebook and no open session is left. */
  async whenClean(): Promise<void> {
    await eventually('the copies and their sessions are gone', async () => {
      const notebooks = await unlessCut(this.client.notebooks.list({ limit: 100 }));
      const sessions = await unlessCut(this.client.notebookSessions.list({ status: 'open' }));
      const environments = await unlessCut(this.client.executionEnvironments.list({ status: 'open' }));
      return (
        notebooks?.items.every(({ id }) => id === this.notebookId) === true &&
        sessions?.items.length === 0 &&
        environments?.items.length === 0
      );
    });
  }
}

interface Place {
  readonly points: string;
  readonly workers: number;
}

for (const workers of [1, 3]) {
  const place = workers === 1 ? 'one process' : 'three workers';

  test(`${place}: an occurrence whose server dies between the end of its run and its report has one run and one report`, async (t) => {
    const mortal = await Mortal.start(t, workers, "'the answer is ' + str(6 * 7)");
    const { id } = await mortal.job({ outputs: ['html'] });
    await mortal.killAt('job.reported', () => mortal.client.jobs.run(id));
    const occurrence = await eventually('the report is there', async () => {
      const [only] = (await unlessCut(occurrencesOf(mortal.client, id))) ?? [];
      return only?.report === undefined ? undefined : only;
    });
    assert.deepEqual([occurrence.status, occurrence.attempts], ['completed', 1]);
    assert.equal(occurrence.report?.reason, null);
    const page = await mortal.client.jobs.report(occurrence);
    assert.match(new TextDecoder().decode(page?.bytes), /the answer is 42/);
    await requireRuns(mortal.client, id, [occurrence]);
    await mortal.whenClean();
  });

  test(`${place}: occurrences that wait for room while their server dies have one run each, and the one in progress is over`, async (t) => {
    const mortal = await Mortal.start(t, workers, STUBBORN, { TROUPE_USER_MAX_SESSIONS: '1' });
    const first = await mortal.job();
    const waiting = [await mortal.job(), await mortal.job()];
    await mortal.client.jobs.run(first.id);
    await eventually('the first runs', async () => {
      return (await mortal.client.jobs.get(first.id)).status === 'running';
    });
    await mortal.write('6 * 7');
    const fired = [];
    for (const { id } of waiting) fired.push((await mortal.client.jobs.run(id)).id);
    await eventually('one of the others has found no room', async () => {
      const all = await Promise.all(waiting.map(({ id }) => occurrencesOf(mortal.client, id)));
      return all.some(([only]) => only?.reason?.code === 'quota_exceeded');
    });
    await mortal.kill();
    const lost = await mortal.whenOver(first.id);
    assert.deepEqual([lost.status, lost.reason?.code], ['failed', 'server_stopped']);
    await requireRuns(mortal.client, first.id, [lost]);
    for (const [at, { id }] of waiting.entries()) {
      const occurrence = await mortal.whenOver(id);
      assert.deepEqual([occurrence.id, occurrence.status, occurrence.attempts], [fired[at], 'completed', 1]);
      await requireRuns(mortal.client, id, [occurrence]);
    }
    await mortal.whenClean();
  });

  test(`${place}: an occurrence whose server dies while it is being cancelled is cancelled once, and the next one has one run`, async (t) => {
    const mortal = await Mortal.start(t, workers, STUBBORN);
    const job = await mortal.job({ schedule: { everyS: EVERY_MS / 1000 }, overlap: 'cancel' });
    // In the turn that decides the cancellation, which is then not stored.
    await mortal.killAt('job.superseded', () => Promise.resolve());
    const cancelled = await eventually('an occurrence is being cancelled', async () => {
      const shown = await unlessCut(mortal.client.jobs.get(job.id));
      return shown?.status === 'cancelling' ? shown.currentOccurrenceId : undefined;
    });
    await mortal.write('6 * 7');
    await mortal.kill();
    const all = await eventually('a later occurrence has completed', async () => {
      const listed = await occurrencesOf(mortal.client, job.id);
      return listed.some(({ status }) => status === 'completed') ? listed : undefined;
    });
    const before = all.find(({ id }) => id === cancelled);
    assert.deepEqual([before?.status, before?.reason?.code], ['cancelled', 'superseded']);
    const { updatedAt: expectedUpdatedAt } = await mortal.client.jobs.get(job.id);
    await mortal.client.jobs.update(job.id, { expectedUpdatedAt, paused: true });
    const ended = await eventually('all occurrences are over', async () => {
      const listed = await occurrencesOf(mortal.client, job.id);
      return listed.every(({ finishedAt }) => finishedAt !== null) ? listed : undefined;
    });
    requireEachInstant(job, ended, EVERY_MS);
    await requireRuns(mortal.client, job.id, ended);
    await mortal.whenClean();
  });
}
