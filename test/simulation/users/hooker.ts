/**
 * A user who makes hooks for the ends of runs and the failures of jobs, changes, pauses, resumes, tests and deletes them, sends deliveries
 * again and rotates secrets. The user has jobs that a program elsewhere fires, too (`outside-program.ts`).
 */
import {
  type Facts,
  type Happened,
  HookJudge,
  type ShownDelivery,
  type ShownHook,
  type SimulatedFilter,
  type Wish,
} from '../judges/hooks.ts';
import type { ShownJob } from '../judges/jobs.ts';
import { FAIL, print, sleep } from '../kernel/cell-code.ts';
import { type Mood, RECEIVERS, receiversOf } from '../world/receivers.ts';
import { type World, world } from '../world/world.ts';
import { isAnswer, type SimulatedClient } from './client.ts';
import { Complaints } from './complaints.ts';
import { KeyedRequests } from './keyed-requests.ts';
import { type FiredOccurrence, OutsideProgram } from './outside-program.ts';
import type { SimulatedUser } from './simulated-user.ts';

const HOOKS = '/api/v3/hooks';
const JOBS = '/api/v3/jobs';
const MAX_HOOKS = 4;
const MAX_JOBS = 2;
const ATTEMPTS = 200;
/** How long all deliveries may take to end once the receivers are healthy, and after how much of it the clock is set forward. */
const MAX_END_MS = 300_000;
const STEP_MS = 250;
const LONG_STEP_MS = 5000;
const CALM_END_MS = 3000;
/** More than the longest pause after the few attempts of a simulation. */
const PAST_PAUSES_MS = 3_600_000;
const EVENTS = [
  'run.completed',
  'run.failed',
  'run.cancelled',
  'job.failed',
  'job.skipped',
  'job.paused',
  'session.failed',
];

interface OwnHook {
  readonly id: string;
  readonly key: string;
  readonly judge: HookJudge;
  /** Nobody changes it, so that no event may be lost to a change. */
  readonly isSteady: boolean;
  isDeleted: boolean;
}

interface OwnJob {
  readonly id: string;
  readonly notebookId: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly program: OutsideProgram;
}

interface ShownRun {
  readonly id: string;
  readonly status: string;
  readonly finishedAt: string | null;
  readonly sessionId?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

interface AllFacts extends Facts {
  readonly occurrences: ReadonlyMap<OwnJob, readonly FiredOccurrence[]>;
}

type Change = Partial<Wish> & { readonly paused?: boolean; readonly url?: string };

export class Hooker implements SimulatedUser {
  readonly name: string;
  readonly acknowledged: ReadonlySet<string> = new Set();
  readonly sessionId = undefined;
  readonly runsPath = undefined;
  readonly #client: SimulatedClient;
  /** Nobody deletes runs. */
  readonly #isAlone: boolean;
  readonly #world: World = world();
  readonly #random = world().ofUsers.fork();
  readonly #complaints = new Complaints(world());
  readonly #requests: KeyedRequests;
  readonly #hooks: OwnHook[] = [];
  readonly #jobs: OwnJob[] = [];
  #count = 0;
  #calm: Promise<void> | undefined;

  constructor(client: SimulatedClient, name: string, isAlone: boolean) {
    this.#client = client;
    this.#isAlone = isAlone;
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
    if (this.#jobs.length < MAX_JOBS && this.#random.is(0.3)) return this.#createJob();
    const hooks = this.#hooks.filter(({ isDeleted }) => !isDeleted);
    if (hooks.length === 0 || (hooks.length < MAX_HOOKS && this.#random.is(0.2))) return this.#create();
    if (this.#jobs.length > 0 && this.#random.is(0.35)) return this.#random.pick(this.#jobs).program.act();
    if (this.#jobs.length > 0 && this.#random.is(0.1)) return this.#resumeJob(this.#random.pick(this.#jobs));
    const hook = this.#random.pick(hooks);
    const dice = this.#random.next();
    if (dice < 0.3) return void (await this.#read(hook));
    if (dice < 0.55) return void (await this.#deliveries(hook));
    if (dice < 0.7) return this.#test(hook);
    if (dice < 0.78) return this.#replay(hook);
    if (dice < 0.84) return this.#rotate(hook);
    if (hook.isSteady) return void (await this.#read(hook));
    if (dice < 0.89) return void (await this.#change(hook, { paused: true }));
    if (dice < 0.95) return void (await this.#change(hook, { paused: false }));
    if (dice < 0.985) return void (await this.#change(hook, this.#otherWish(hook)));
    return this.#delete(hook);
  }

  /** Right after a start: all hooks are there, and all ids of firings are known. */
  async inspect(): Promise<void> {
    for (const hook of this.#hooks) if (!hook.isDeleted) await this.#read(hook);
    for (const { program } of this.#jobs) await program.inspect();
  }

  // ── Beginnings ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #createJob(): Promise<void> {
    const token = `h${this.name}x${++this.#count}`;
    const shape = this.#random.pick(['', sleep(50), sleep(400), FAIL]);
    const serialization = { cells: [{ cell_id: 'a', code: `${print(token)}\n${shape}` }] };
    const notebookId = await this.#requests.created(
      '/api/v3/notebooks',
      { serialization },
      'id',
      `${token}-nb`,
    );
    if (notebookId === undefined) return;
    const metadata = { made: token, kind: this.#random.pick(['a', 'b']) };
    const body = {
      name: token,
      target: { notebookId },
      schedule: { everyS: this.#random.pick([1, 2, 3, 60]) },
      retries: 0,
      metadata,
    };
    const id = await this.#requests.created(JOBS, body, 'id', token);
    if (id === undefined) return;
    const program = new OutsideProgram(this.#client, this.#random, this.#complaints, token, id);
    this.#jobs.push({ id, notebookId, metadata, program });
  }

  #wish(): Wish {
    const most = this.#random.is(0.4)
      ? EVENTS
      : this.#random.shuffled(EVENTS).slice(0, 1 + this.#random.below(4));
    return { events: most, filter: this.#filter() };
  }

  #filter(): SimulatedFilter {
    if (this.#jobs.length === 0 || this.#random.is(0.5)) return {};
    const { id, notebookId } = this.#random.pick(this.#jobs);
    return this.#random.pick<SimulatedFilter>([
      { jobId: id },
      { notebookId },
      { metadata: { kind: this.#random.pick(['a', 'b']) } },
    ]);
  }

  #otherWish({ key }: OwnHook): Change {
    const { events, filter } = this.#wish();
    return this.#random.pick<Change>([
      { events },
      { filter },
      { url: `${RECEIVERS}/${key}/${++this.#count}` },
    ]);
  }

  async #create(): Promise<void> {
    const key = `k${this.name}x${++this.#count}`;
    receiversOf(this.#world).setMood(
      key,
      this.#random.pick<Mood>(['good', 'mixed', 'mixed', 'bad', 'leaving']),
    );
    const body = { url: `${RECEIVERS}/${key}/0`, name: key, ...this.#wish() };
    const sentMs = this.#world.nowMs;
    const answer = await this.#client.post(HOOKS, body);
    if (isAnswer(answer) && answer.status !== 201)
      return this.#complaints.complain('the creation of a hook', answer);
    const shown = isAnswer(answer) ? (answer.json as unknown as ShownHook) : await this.#found(key);
    if (shown === undefined) return;
    this.#world.count('hooks');
    const isOfOneProcess = this.#client.server.life.name.startsWith('life');
    const judge = new HookJudge(this.#world, key, shown, sentMs, isOfOneProcess);
    this.#hooks.push({ id: shown.id, key, judge, isSteady: this.#random.is(0.5), isDeleted: false });
  }

  /** Resolves with a hook whose creation was not answered; undefined when there is none. */
  async #found(key: string): Promise<ShownHook | undefined> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      await this.#requests.pause();
      await this.#calm;
      const all = await this.#pages<ShownHook & { name: string | null }>(HOOKS, 'limit=50');
      if (all !== undefined) return all.find(({ name }) => name === key);
    }
    return undefined;
  }

  // ── Reads ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #read(hook: OwnHook): Promise<ShownHook | undefined> {
    const sentMs = this.#world.nowMs;
    const answer = await this.#client.get(`${HOOKS}/${hook.id}`);
    if (!isAnswer(answer)) return undefined;
    if (answer.status !== 200) {
      this.#complaints.complain(`the read of the hook ${hook.id}`, answer);
      return undefined;
    }
    const shown = answer.json as unknown as ShownHook;
    hook.judge.noteSeen(shown, sentMs);
    return shown;
  }

  async #deliveries(hook: OwnHook): Promise<ShownDelivery[] | undefined> {
    const all = await this.#pages<ShownDelivery>(`${HOOKS}/${hook.id}/deliveries`, 'limit=100');
    if (all !== undefined) hook.judge.noteList(all);
    return all;
  }

  async #pages<Item>(path: string, query: string): Promise<Item[] | undefined> {
    const items: Item[] = [];
    for (let cursor = ''; ; ) {
      const after = cursor === '' ? '' : `&after=${encodeURIComponent(cursor)}`;
      const page = await this.#client.get(path, `${query}${after}`);
      if (!isAnswer(page)) return undefined;
      if (page.status !== 200) {
        this.#complaints.complain(`the list ${path}`, page);
        return undefined;
      }
      items.push(...(page.json.items as Item[]));
      const { nextCursor } = page.json;
      if (typeof nextCursor !== 'string') return items;
      cursor = nextCursor;
    }
  }

  // ── Acts ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #test(hook: OwnHook): Promise<void> {
    const answer = await this.#client.post(`${HOOKS}/${hook.id}/test`, {});
    if (!isAnswer(answer)) return;
    if (answer.status === 202) hook.judge.noteDelivery(answer.json as unknown as ShownDelivery);
    else if (answer.json.code !== 'hook_paused') this.#complaints.complain('the test of a hook', answer);
  }

  async #replay(hook: OwnHook): Promise<void> {
    const all = await this.#deliveries(hook);
    if (all === undefined || all.length === 0) return;
    const { id } = this.#random.pick(all);
    hook.judge.replaying(id);
    const answer = await this.#client.post(`${HOOKS}/${hook.id}/deliveries/${id}/replay`, {});
    if (isAnswer(answer) && answer.status !== 202 && answer.json.code !== 'hook_paused')
      this.#complaints.complain('the repetition of a delivery', answer);
  }

  /** Rotates the secret, however often that has to be sent. */
  async #rotate(hook: OwnHook): Promise<void> {
    const sentMs = this.#world.nowMs;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      hook.judge.noteSecret(undefined, sentMs);
      const answer = await this.#client.post(`${HOOKS}/${hook.id}/rotate`, {});
      if (isAnswer(answer) && answer.status === 200)
        return hook.judge.noteSecret(String(answer.json.secret), sentMs);
      if (isAnswer(answer)) return this.#complaints.complain('the rotation of a secret', answer);
      await this.#requests.pause();
      await this.#calm;
    }
  }

  /** Changes a hook, however often that has to be sent. */
  async #change(hook: OwnHook, change: Change): Promise<boolean> {
    let sentMs: number | undefined;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const shown = await this.#read(hook);
      if (shown !== undefined) {
        sentMs ??= this.#world.nowMs;
        hook.judge.changing(change);
        const body = { expectedUpdatedAt: shown.updatedAt, ...change };
        const answer = await this.#client.ask('PATCH', `${HOOKS}/${hook.id}`, { body });
        if (isAnswer(answer) && answer.status === 200) {
          hook.judge.changed(answer.json as unknown as ShownHook, sentMs);
          return true;
        }
        if (isAnswer(answer) && !(answer.json.code === 'stale_update' && attempt > 0)) {
          this.#complaints.complain(`the change ${JSON.stringify(change)}`, answer);
          return false;
        }
      }
      await this.#requests.pause();
      await this.#calm;
    }
    return false;
  }

  async #delete(hook: OwnHook): Promise<void> {
    hook.judge.deleting();
    hook.isDeleted = true;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const answer = await this.#client.ask('DELETE', `${HOOKS}/${hook.id}`);
      if (isAnswer(answer) && (answer.status === 204 || (answer.status === 404 && attempt > 0)))
        return hook.judge.deleted();
      if (isAnswer(answer)) return this.#complaints.complain('the deletion of a hook', answer);
      await this.#requests.pause();
      await this.#calm;
    }
  }

  /** Resumes a job that failures have paused. */
  async #resumeJob(job: OwnJob): Promise<void> {
    await this.#pauseJob(job, false);
  }

  async #pauseJob({ id }: OwnJob, paused: boolean): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const read = await this.#client.get(`${JOBS}/${id}`);
      if (isAnswer(read) && read.status === 200) {
        const { updatedAt, paused: isPaused } = read.json as unknown as ShownJob;
        if (isPaused === paused) return;
        const body = { expectedUpdatedAt: updatedAt, paused };
        const answer = await this.#client.ask('PATCH', `${JOBS}/${id}`, { body });
        if (isAnswer(answer) && answer.status !== 200 && answer.json.code !== 'stale_update')
          return this.#complaints.complain('the change of a job', answer);
      }
      await this.#requests.pause();
      await this.#calm;
    }
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────────────────

  async useOnceMore(): Promise<string | undefined> {
    receiversOf(this.#world).heal();
    for (const job of this.#jobs) await this.#pauseJob(job, true);
    for (const hook of this.#hooks)
      if (!hook.isDeleted && !(await this.#resume(hook))) return `the hook ${hook.id} cannot be resumed`;
    const fromMs = this.#world.nowMs;
    let isForward = false;
    for (;;) {
      const tookMs = this.#world.nowMs - fromMs;
      const facts = await this.#facts();
      const left = facts === undefined ? 'the runs and jobs cannot be listed' : await this.#leftOf(facts);
      if (facts !== undefined && (left === '' || tookMs > MAX_END_MS)) {
        for (const [{ program }, all] of facts.occurrences) program.judge(all);
        // Where something is left, not all deliveries were listed at the end.
        for (const { judge, isDeleted } of this.#hooks) judge.judge(facts, !isDeleted && left === '');
        return left === '' ? undefined : left;
      }
      if (tookMs > MAX_END_MS) return left;
      if (tookMs > CALM_END_MS && !isForward) {
        isForward = true;
        this.#world.clock.set(PAST_PAUSES_MS); // deliveries that have failed often wait for long
      }
      await this.#world.sleep(tookMs > CALM_END_MS ? LONG_STEP_MS : STEP_MS);
    }
  }

  /** Resumes a hook unless it is not paused: a change would end the time of which its judge is sure. */
  async #resume(hook: OwnHook): Promise<boolean> {
    const shown = await this.#read(hook);
    return shown?.paused === false || (await this.#change(hook, { paused: false }));
  }

  /** Resolves with what is not delivered; an empty text when nothing is left. */
  async #leftOf(facts: Facts): Promise<string> {
    for (const hook of this.#hooks) {
      if (hook.isDeleted) continue;
      const shown = await this.#read(hook);
      if (shown === undefined || (await this.#deliveries(hook)) === undefined)
        return `the deliveries of the hook ${hook.id} cannot be listed`;
      const { waiting } = hook.judge;
      if (waiting !== undefined) return `the hook ${hook.id} does not end the delivery ${waiting.id}`;
      if (shown.pending !== 0)
        return `the hook ${hook.id} says that ${shown.pending} deliveries wait, and none does`;
      const missing = hook.judge.missing(facts);
      if (missing !== undefined)
        return `the hook ${hook.id} wants ${missing.type} of ${missing.of} at ${missing.at}, and has no delivery of it`;
    }
    return '';
  }

  /** Resolves with everything that has happened; undefined when it cannot be listed, or is not over. */
  async #facts(): Promise<AllFacts | undefined> {
    const happened = new Map<string, Happened>();
    const states = new Map<string, string>();
    const owners = new Map<string, OwnJob>();
    const occurrences = new Map<OwnJob, readonly FiredOccurrence[]>();
    const add = (event: Happened) => void happened.set(`${event.type} ${event.of}`, event);
    for (const job of this.#jobs) {
      const all = await this.#pages<FiredOccurrence>(`${JOBS}/${job.id}/occurrences`, 'limit=100');
      if (all === undefined || all.some(({ finishedAt }) => finishedAt === null)) return undefined;
      occurrences.set(job, all);
      const { id: jobId, notebookId, metadata } = job;
      for (const { id, status, finishedAt, runId } of all) {
        states.set(id, status);
        if (runId !== null) owners.set(runId, job);
        if (status === 'failed' || status === 'skipped')
          add({ type: `job.${status}`, of: id, notebookId, jobId, metadata, at: finishedAt!, isOfJob: true });
      }
    }
    const runs = await this.#pages<ShownRun>('/api/v3/runs', 'limit=100');
    if (runs === undefined) return undefined;
    for (const { id, status, finishedAt, sessionId = null, metadata = {} } of runs) {
      states.set(id, status);
      const job = owners.get(id);
      if (status !== 'running' && finishedAt !== null)
        add({
          ...{ type: `run.${status}`, of: id, metadata, at: finishedAt },
          notebookId: job?.notebookId ?? sessionId,
          jobId: job?.id ?? null,
          isOfJob: job !== undefined,
        });
    }
    const jobs = new Set(this.#jobs.map(({ id }) => id));
    return { happened, states, jobs, hasAllRuns: this.#isAlone, occurrences };
  }
}
