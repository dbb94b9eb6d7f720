/**
 * A user who makes jobs, fires, pauses, resumes, changes and deletes them, reads their occurrences in pages, and cancels their runs. Some
 * jobs belong to a member of the workspace who loses the right to run notebooks now and then.
 */
import {
  JobJudge,
  type ShownJob,
  type ShownOccurrence,
  type ShownRun,
  type SimulatedSchedule,
} from '../judges/jobs.ts';
import { EXIT, FAIL, HANG, print, sleep } from '../kernel/cell-code.ts';
import { executionsOf } from '../world/executions.ts';
import { type World, world } from '../world/world.ts';
import { isAnswer, type Outcome, type SimulatedClient } from './client.ts';
import { Complaints, shownOf } from './complaints.ts';
import { KeyedRequests } from './keyed-requests.ts';
import type { SimulatedUser } from './simulated-user.ts';

const JOBS = '/api/v3/jobs';
const MAX_JOBS = 3;
/** The same, where the moments of jobs matter most. */
const MANY_JOBS = 8;
const ATTEMPTS = 200;
const PAUSE_MS = 250;
/** How long the occurrences of a job that is paused may take to end: two pauses between attempts, and the look at a clock that was set. */
const MAX_END_MS = 400_000;
const END_STEP_MS = 2000;
const SHOWN_PAGE = 7;
/** How long the member may not run notebooks. */
const BARRED_MS = 1500;
/** How many jobs fail at once and at each instant, and are left alone until they have failed often enough to be paused. */
const FAILING = 0.25;
const ALONE_MS = 9000;
/** The clock is set forward by more than the longest pause between attempts. */
const PAST_PAUSES_MS = 130_000;

/** A job that was made. */
interface OwnJob {
  readonly id: string;
  readonly judge: JobJudge;
  /** The text that the code of its notebook prints. */
  readonly token: string;
  readonly notebookId: string;
  readonly isOfMember: boolean;
  /** Until then its user only reads it. */
  readonly aloneUntilMs: number;
  isDeleted: boolean;
  /** A request to delete it is under way, or was lost. */
  isLeaving: boolean;
}

/** The members of a new job that are drawn unless it fails at each instant. */
interface DrawnMembers {
  readonly schedule: SimulatedSchedule;
  readonly overlap: string;
  readonly retries: number;
  readonly timeoutS: number | null;
  readonly paused?: boolean;
}

const FAILING_MEMBERS: DrawnMembers = {
  schedule: { everyS: 1 },
  overlap: 'skip',
  retries: 0,
  timeoutS: null,
};

/** The members of a job that this user changes. */
interface Change {
  readonly schedule?: SimulatedSchedule;
  readonly paused?: boolean;
}

export class Scheduler implements SimulatedUser {
  readonly name: string;
  readonly acknowledged: ReadonlySet<string> = new Set();
  readonly sessionId = undefined;
  readonly runsPath = undefined;
  readonly #client: SimulatedClient;
  readonly #isBusy: boolean;
  readonly #world: World = world();
  readonly #random = world().ofUsers.fork();
  readonly #complaints = new Complaints(world());
  readonly #requests: KeyedRequests;
  readonly #jobs: OwnJob[] = [];
  #member: { readonly userId: string; readonly client: SimulatedClient } | undefined;
  #count = 0;
  #calm: Promise<void> | undefined;

  /** `isBusy`: there are many jobs, which fire often and are seldom attempted again after a pause. */
  constructor(client: SimulatedClient, name: string, isBusy = false) {
    this.#client = client;
    this.#isBusy = isBusy;
    this.name = name;
    const shared = { world: this.#world, client, random: this.#random, complaints: this.#complaints };
    this.#requests = new KeyedRequests(shared);
  }

  waitFor(calm: Promise<void>): void {
    this.#calm = calm;
  }

  stopFollowing(): void {}

  async live(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await this.#world.sleep(-Math.log(1 - this.#random.next()) * this.#world.nature.thinkMs);
      await this.#calm;
      if (!isOver()) await this.#act();
    }
  }

  async #act(): Promise<void> {
    if (this.#member === undefined && this.#random.is(0.5)) return this.#invite();
    const present = this.#jobs.filter(({ isDeleted }) => !isDeleted);
    const jobs = present.filter(({ aloneUntilMs }) => aloneUntilMs <= this.#world.nowMs);
    if (jobs.length === 0 && present.length > MAX_JOBS) return void (await this.#read(present[0]!));
    if (jobs.length === 0 || (jobs.length < (this.#isBusy ? MANY_JOBS : MAX_JOBS) && this.#random.is(0.3)))
      return this.#create();
    const job = this.#random.pick(jobs);
    const dice = this.#random.next();
    if (dice < 0.22) return this.#fire(job);
    if (dice < 0.3) return this.#change(job, { paused: true });
    if (dice < 0.45) return this.#change(job, { paused: false });
    if (dice < 0.54) return this.#change(job, { schedule: this.#schedule() });
    if (dice < 0.6) return this.#race(job);
    if (dice < 0.72) return void (await this.#read(job));
    if (dice < 0.86) return void (await this.#occurrences(job, SHOWN_PAGE));
    if (dice < 0.93) return this.#cancel(job);
    if (dice < 0.97) return this.#bar(job);
    return this.#delete(job);
  }

  /** Right after a start: all jobs are there. */
  async inspect(): Promise<void> {
    for (const job of this.#jobs) if (!job.isDeleted && !job.isLeaving) await this.#read(job);
  }

  // ── Beginnings ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #invite(): Promise<void> {
    const userId = `member-of-${this.name}`;
    const added = await this.#client.post('/api/v3/members', { userId, role: 'editor' });
    if (!isAnswer(added) || (added.status !== 201 && added.status !== 409)) return;
    const scopes = ['workspaceRuntime:connect', 'datasource:read', 'workspace:manage'];
    const made = await this.#client.post('/api/v3/access-tokens', { name: userId, userId, scopes });
    if (!isAnswer(made) || made.status !== 201) return;
    this.#member = { userId, client: this.#client.as(String(made.json.token)) };
  }

  /** Makes a job of any kind, or one that fails again and again. */
  async #create(): Promise<void> {
    const number = ++this.#count;
    const token = `j${this.name}x${number}`;
    const fails = !this.#isBusy && this.#random.is(FAILING);
    const code = `${print(token)}\n${fails ? FAIL : this.#shape()}`;
    const serialization = { cells: [{ cell_id: 'a', code }] };
    const notebookId = await this.#requests.created(
      '/api/v3/notebooks',
      { serialization },
      'id',
      `${token}-nb`,
    );
    if (notebookId === undefined) return;
    const drawn = fails ? FAILING_MEMBERS : this.#drawn(code);
    const body = {
      name: token,
      target: {
        notebookId,
        ...(this.#random.is(0.3) && { cells: ['a'] }),
        // Nobody opens it, so each instant is skipped.
        ...(!fails && this.#random.is(0.1) && { session: 'open' }),
      },
      ...drawn,
      catchUp: this.#random.pick(['last', 'last', 'none', 'all']),
      metadata: { made: token },
    };
    const isOfMember = this.#member !== undefined && !fails && this.#random.is(0.5);
    const client = isOfMember ? this.#member!.client : this.#client;
    const sentMs = this.#world.nowMs;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const answer = await client.post(JOBS, body, { key: token });
      if (!isAnswer(answer)) {
        await this.#requests.pause();
        await this.#calm;
        continue;
      }
      if (answer.status === 400 && 'at' in body.schedule) return; // its instant is over
      if (answer.status === 403 && isOfMember) return;
      if (answer.status === 409 && answer.json.code === 'idempotency_in_progress') {
        await this.#requests.pause();
        continue;
      }
      if (answer.status !== 201) return this.#complaints.complain('the creation of a job', answer);
      const job = answer.json as unknown as ShownJob;
      this.#world.count('jobs');
      const judge = new JobJudge(this.#world, `the job ${job.id}`, job, sentMs);
      this.#jobs.push({
        id: job.id,
        judge,
        token,
        notebookId,
        isOfMember,
        aloneUntilMs: fails ? this.#world.nowMs + ALONE_MS : 0,
        isDeleted: false,
        isLeaving: false,
      });
      return;
    }
  }

  /** Draws the members of a job whose notebook has this code. */
  #drawn(code: string): DrawnMembers {
    return {
      schedule: this.#schedule(),
      overlap: this.#random.pick(['skip', 'skip', 'queue', 'cancel']),
      retries: this.#isBusy ? this.#random.pick([0, 0, 0, 2]) : this.#random.pick([0, 1, 2]),
      timeoutS: code.endsWith(HANG) || this.#random.is(0.2) ? 1 : null,
      ...(this.#random.is(0.15) && { paused: true }),
    };
  }

  #shape(): string {
    return this.#random.pick(['', '', sleep(20), sleep(300), sleep(1500), FAIL, EXIT, HANG]);
  }

  #schedule(): SimulatedSchedule {
    if (this.#random.is(0.1)) {
      const ms = this.#world.clock.nowMs + 100 + this.#random.next() * 5000;
      return { at: new Date(ms).toISOString() };
    }
    if (this.#random.is(0.3)) return { cron: `*/${this.#random.pick([1, 2, 5, 10])} * * * * *` };
    return { everyS: this.#isBusy ? 1 : this.#random.pick([1, 1, 2, 3, 7, 60]) };
  }

  // ── Reads ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Resolves with the job as it is; undefined when nobody answered. */
  async #read(job: OwnJob): Promise<ShownJob | undefined> {
    const sentMs = this.#world.nowMs;
    const answer = await this.#client.get(`${JOBS}/${job.id}`);
    if (!isAnswer(answer) || job.isDeleted) return undefined;
    if (answer.status !== 200) {
      this.#complaints.complain(`the read of the job ${job.id}`, answer);
      return undefined;
    }
    const shown = answer.json as unknown as ShownJob;
    job.judge.noteSeen(shown, sentMs);
    return shown;
  }

  /** Resolves with all occurrences of a job, in pages of this size; undefined when nobody answered. */
  async #occurrences(job: OwnJob, limit: number): Promise<ShownOccurrence[] | undefined> {
    const all = await this.#pages<ShownOccurrence>(
      `${JOBS}/${job.id}/occurrences`,
      `limit=${limit}`,
      (page) => job.judge.noteOrder(page),
    );
    if (all === undefined || job.isDeleted) return undefined;
    job.judge.noteList(all);
    return all;
  }

  /** Resolves with all items of a list; undefined when nobody answered. `each` judges each page, because a wrong list may have no end. */
  async #pages<Item>(
    path: string,
    query: string,
    each: (page: readonly Item[]) => void = () => undefined,
  ): Promise<Item[] | undefined> {
    const items: Item[] = [];
    for (let cursor = ''; ; ) {
      const after = cursor === '' ? '' : `&after=${encodeURIComponent(cursor)}`;
      const page = await this.#client.get(path, `${query}${after}`);
      if (!isAnswer(page)) return undefined;
      if (page.status !== 200) {
        this.#complaints.complain(`the list ${path}`, page);
        return undefined;
      }
      const shown = page.json.items as Item[];
      each(shown);
      items.push(...shown);
      const { nextCursor } = page.json;
      if (typeof nextCursor !== 'string') return items;
      cursor = nextCursor;
    }
  }

  // ── Acts ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #fire(job: OwnJob): Promise<void> {
    const answer = await this.#clientOf(job).post(`${JOBS}/${job.id}/run`, {});
    if (!isAnswer(answer)) return;
    if (answer.status === 202) {
      this.#world.count('firings by hand');
      job.judge.noteOccurrence(answer.json as unknown as ShownOccurrence);
    } else if (answer.json.code !== 'job_running' && answer.status !== 403)
      this.#complaints.complain('a firing', answer);
  }

  /** Changes a job, however often that has to be sent. */
  async #change(job: OwnJob, change: Change): Promise<void> {
    let sentMs: number | undefined;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const shown = await this.#read(job);
      const answer =
        shown && (await this.#send(job, shown.updatedAt, change, () => (sentMs ??= this.#world.nowMs)));
      if (answer === undefined || !isAnswer(answer)) {
        await this.#requests.pause();
        await this.#calm;
        continue;
      }
      if (answer.status === 200) return job.judge.changed(answer.json as unknown as ShownJob, sentMs!);
      if (answer.json.code === 'stale_update' && attempt > 0) continue;
      if (answer.status === 400 && change.schedule !== undefined && 'at' in change.schedule) {
        // Its instant is over. The change before it may have been carried out.
        return this.#change(job, { schedule: { everyS: 5 } });
      }
      return this.#complaints.complain(`the change ${JSON.stringify(change)}`, answer);
    }
  }

  async #send(job: OwnJob, expectedUpdatedAt: string, change: Change, before: () => void): Promise<Outcome> {
    before();
    job.judge.changing(change);
    const body = { expectedUpdatedAt, ...change };
    return await this.#client.ask('PATCH', `${JOBS}/${job.id}`, { body });
  }

  /** Sends two changes of one version, of which at most one may be accepted. */
  async #race(job: OwnJob): Promise<void> {
    const shown = await this.#read(job);
    if (shown === undefined) return;
    const sentMs = this.#world.nowMs;
    const other = { paused: this.#random.is(0.5) };
    const first = this.#send(job, shown.updatedAt, { schedule: this.#schedule() }, () => undefined);
    await this.#world.sleep(this.#random.next() * 3);
    const answers = await Promise.all([first, this.#send(job, shown.updatedAt, other, () => undefined)]);
    const accepted = answers.filter((answer) => isAnswer(answer) && answer.status === 200);
    if (accepted.length > 1)
      this.#world.problem(
        `two changes of one version of the job ${job.id} (${shown.updatedAt}) were accepted`,
      );
    for (const answer of answers) this.#complaints.requireSound('a change of a job', answer);
    const [only] = accepted;
    if (answers.every(isAnswer)) {
      const seen =
        only !== undefined && isAnswer(only) ? (only.json as unknown as ShownJob) : await this.#read(job);
      if (seen !== undefined) return job.judge.changed(seen, sentMs);
    }
    await this.#change(job, { schedule: { everyS: this.#random.pick([1, 2, 3]) } });
  }

  /** Cancels the run of the present occurrence. */
  async #cancel(job: OwnJob): Promise<void> {
    const page = await this.#client.get(`${JOBS}/${job.id}/occurrences`, 'limit=3&order=desc');
    if (!isAnswer(page) || page.status !== 200) return;
    const found = (page.json.items as ShownOccurrence[]).find(({ status }) => status === 'running');
    if (found?.runId == null) return;
    this.#complaints.requireExpected(
      'the cancellation of the run of a job',
      await this.#client.post(`/api/v3/runs/${found.runId}/cancel`, {}),
    );
  }

  /** The member may not run notebooks for a while, in which a pause between attempts may end. */
  async #bar(job: OwnJob): Promise<void> {
    const member = this.#member;
    if (member === undefined || !job.isOfMember) return;
    const path = `/api/v3/members/${member.userId}`;
    const lowered = await this.#client.ask('PATCH', path, { body: { role: 'viewer' } });
    if (isAnswer(lowered) && lowered.status === 200) {
      const before = await this.#occurrences(job, 100);
      const { setClockEveryMs } = this.#world.nature;
      if (setClockEveryMs < Number.POSITIVE_INFINITY && this.#random.is(0.7))
        this.#world.clock.set(PAST_PAUSES_MS);
      await this.#world.sleep(BARRED_MS);
      const after = await this.#occurrences(job, 100);
      if (before !== undefined && after !== undefined) this.#judgeBarred(job, before, after);
    }
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const raised = await this.#client.ask('PATCH', path, { body: { role: 'editor' } });
      if (isAnswer(raised) && raised.status === 200) return;
      await this.#requests.pause();
      await this.#calm;
    }
  }

  /** Nothing has begun between two lists. */
  #judgeBarred(job: OwnJob, before: readonly ShownOccurrence[], after: readonly ShownOccurrence[]): void {
    const known = new Map(before.map((occurrence) => [occurrence.id, occurrence]));
    for (const { id, attempts, runId } of after)
      if (runId !== null && runId !== known.get(id)?.runId && attempts > (known.get(id)?.attempts ?? 0))
        this.#world.problem(
          `the job ${job.id} has begun an attempt of ${id} while its owner may not run notebooks`,
        );
  }

  async #delete(job: OwnJob): Promise<void> {
    job.isLeaving = true;
    await this.#deleteAtLast(job);
    job.isLeaving = false;
  }

  async #deleteAtLast(job: OwnJob): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const answer = await this.#clientOf(job).ask('DELETE', `${JOBS}/${job.id}`);
      if (isAnswer(answer) && (answer.json.code === 'job_running' || answer.status === 403)) {
        if (attempt === 0) return;
        await this.#requests.pause(); // it may be deleted as soon as nothing of it is in progress
        continue;
      }
      if (isAnswer(answer) && (answer.status === 204 || (answer.status === 404 && attempt > 0))) {
        job.isDeleted = true;
        return;
      }
      if (isAnswer(answer)) return this.#complaints.complain('the deletion of a job', answer);
      await this.#requests.pause();
      await this.#calm;
    }
  }

  /** Owners of the workspace may do everything with the jobs of a member. */
  #clientOf({ isOfMember }: OwnJob): SimulatedClient {
    return isOfMember && this.#random.is(0.5) ? this.#member!.client : this.#client;
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────────────────

  async useOnceMore(): Promise<string | undefined> {
    for (const job of this.#jobs) if (!job.isDeleted) await this.#change(job, { paused: true });
    // Pauses between attempts end by the clock, which may have been set back by hours.
    const { clock, nowMs } = this.#world;
    clock.set(clock.latestBetween(0, nowMs) - clock.nowMs);
    for (const job of this.#jobs) {
      const wrong = await this.#judge(job);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }

  async #judge(job: OwnJob): Promise<string | undefined> {
    const untilMs = this.#world.nowMs + MAX_END_MS;
    let left = '';
    for (;;) {
      const isLast = this.#world.nowMs > untilMs;
      const all = job.isDeleted ? [] : await this.#occurrences(job, 100);
      const runs = await this.#pages<ShownRun>(
        '/api/v3/runs',
        `limit=100&metadata=${encodeURIComponent(`job=${job.id}`)}`,
      );
      if (all !== undefined && runs !== undefined) {
        left = await this.#leftOf(job);
        const isOver =
          all.every(({ finishedAt }) => finishedAt !== null) &&
          runs.every(({ status }) => status !== 'running');
        if (isLast || (isOver && left === '')) {
          if (!job.isDeleted) this.#judgeEnd(job, all, runs);
          break;
        }
      } else if (isLast) return `the occurrences of the job ${job.id} cannot be listed`;
      await this.#world.sleep(
        this.#world.nowMs > untilMs - MAX_END_MS + END_STEP_MS ? END_STEP_MS : PAUSE_MS,
      );
    }
    return left === '' ? undefined : `the job ${job.id} has left ${left} behind`;
  }

  #judgeEnd(job: OwnJob, all: readonly ShownOccurrence[], runs: readonly ShownRun[]): void {
    job.judge.judge(all, runs);
    this.#world.count('occurrences', all.length);
    this.#world.count('runs of jobs', runs.length);
    const times = executionsOf(this.#world).get(job.token)?.times ?? 0;
    if (times > job.judge.attempts)
      this.#world.problem(
        `the code ${job.token} of the job ${job.id} has run ${times} times in ${job.judge.attempts} attempts`,
      );
  }

  /** Resolves with what the attempts of a job have left behind; an empty text when there is nothing. */
  async #leftOf({ id }: OwnJob): Promise<string> {
    const query = `metadata=${encodeURIComponent(`job=${id}`)}`;
    const copies = await this.#client.get('/api/v3/notebooks', query);
    if (!isAnswer(copies) || copies.status !== 200) return shownOf(copies);
    const sessions = await this.#client.get('/api/v3/notebook-sessions', `status=open&${query}`);
    if (!isAnswer(sessions) || sessions.status !== 200) return shownOf(sessions);
    const [copy] = copies.json.items as { id: string }[];
    const [session] = sessions.json.items as { sessionId: string }[];
    if (copy !== undefined) return `the copy ${copy.id}`;
    return session === undefined ? '' : `the session ${session.sessionId}`;
  }
}
