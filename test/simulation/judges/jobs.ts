/**
 * What one job has promised: each instant of its schedule has one occurrence, none has two, an occurrence ends once, and the runs of a job
 * agree with its occurrences. The judge knows what its user has sent, what was answered, and what the clock of the machine has shown.
 */
import { timeOfId } from '#src/base/ids.ts';
import type { World } from '../world/world.ts';

export type SimulatedSchedule =
  | { readonly everyS: number }
  | { readonly at: string }
  /** At every second that is a multiple of `N`: `*\/N * * * * *`. */
  | { readonly cron: string };

export interface ShownJob {
  readonly id: string;
  readonly schedule: SimulatedSchedule;
  readonly catchUp: string;
  readonly paused: boolean;
  readonly status: string;
  readonly reason: { readonly code: string } | null;
  readonly failures: number;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface ShownOccurrence {
  readonly id: string;
  readonly trigger: string;
  readonly dueAt: string;
  readonly lastDueAt?: string;
  readonly status: string;
  readonly reason: { readonly code: string } | null;
  readonly attempts: number;
  readonly runId: string | null;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
}

export interface ShownRun {
  readonly id: string;
  readonly status: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly error?: { readonly code: string } | null;
}

/** A time in which the instants of a schedule may have occurrences, or must have them. Times are those since the beginning. */
interface Span {
  readonly schedule: SimulatedSchedule;
  /** The schedule has begun between these two. */
  readonly fromMs: number;
  readonly begunMs: number;
  /** It has ended between these two, which are undefined while it goes on. */
  toMs: number | undefined;
  endedMs: number | undefined;
}

/** Why an attempt does not begin. */
const REFUSALS = new Set(['owner_left', 'role_too_low', 'notebook_deleted']);
/** Ends of an occurrence whose last run may have ended in another way. */
const ENDS_BESIDE_RUNS = new Set(['server_stopped', 'superseded', ...REFUSALS]);
const OVER = new Set(['completed', 'failed', 'cancelled', 'skipped']);
/** A job keeps so many occurrences (`MAX_OCCURRENCES`). */
const KEPT = 1000;
/** So many of the latest missed instants have an occurrence each. One occurrence may stand for all earlier ones. */
const MISSED_EACH = 100;
/** How many failures in a row pause a job (`MAX_FAILURES`). */
const MAX_FAILURES = 5;
/** With `catchUp: none`, an instant that is later than this does not fire. */
const MAX_LATE_MS = 60_000;
/** The clock shows whole milliseconds. */
const ROUNDING_MS = 2;

export class JobJudge {
  readonly #world: World;
  readonly #name: string;
  readonly #anchorMs: number;
  readonly #createdMs: number;
  readonly #catchUp: string;
  readonly #may: Span[] = [];
  readonly #must: Span[] = [];
  /** The last time at which the job was certainly not paused; undefined when it may be. */
  #runningMs: number | undefined;
  /** The schedules that the job may have. */
  #schedules: readonly SimulatedSchedule[];
  #isChanging = false;
  /** The times at which somebody has sent something that resumes the job. */
  readonly #resumed: number[] = [];
  /** The occurrences that an answer has shown, by their ids. */
  readonly #known = new Map<string, ShownOccurrence>();

  /** The job was created by a request that was sent at `sentMs`, and the answer to which has just come. */
  constructor(world: World, name: string, job: ShownJob, sentMs: number) {
    this.#world = world;
    this.#name = name;
    this.#anchorMs = Date.parse(job.createdAt);
    this.#createdMs = sentMs;
    this.#catchUp = job.catchUp;
    this.#schedules = [job.schedule];
    if (!job.paused) this.#begin(job.schedule, sentMs);
  }

  /** An answer to a request that was sent at `sentMs` has shown the job, which nobody has changed meanwhile. */
  noteSeen(job: ShownJob, sentMs: number): void {
    if (this.#isChanging) return;
    if (!job.paused) this.#runningMs = sentMs;
    else if (this.#runningMs !== undefined) {
      this.#forgive();
      this.#end(this.#runningMs, this.#world.nowMs);
    }
  }

  /** The job has paused itself, maybe before the server had noticed that the clock was set forward. */
  #forgive(): void {
    const { clock, nowMs } = this.#world;
    for (const span of this.#must)
      if (span.endedMs === undefined && clock.wasSetBetween(span.fromMs, nowMs)) span.toMs = span.begunMs;
  }

  /** A request is sent that may change these members. Further requests may follow before `changed`. */
  changing({ schedule, paused }: { readonly schedule?: SimulatedSchedule; readonly paused?: boolean }): void {
    const { nowMs } = this.#world;
    for (const span of this.#must) span.toMs ??= Math.min(this.#runningMs ?? nowMs, nowMs);
    if (paused === false) this.#resumed.push(nowMs);
    this.#isChanging = true;
    if (schedule !== undefined) this.#schedules = [...this.#schedules, schedule];
    for (const each of this.#schedules)
      this.#may.push({ schedule: each, fromMs: nowMs, begunMs: nowMs, toMs: undefined, endedMs: undefined });
  }

  /** The changes of the requests since `sentMs` are over, and an answer has shown the job as it is now. */
  changed(job: ShownJob, sentMs: number): void {
    this.#isChanging = false;
    if (job.reason !== null) this.#forgive();
    this.#schedules = [job.schedule];
    this.#end(sentMs, this.#world.nowMs);
    if (!job.paused) this.#begin(job.schedule, sentMs);
  }

  #begin(schedule: SimulatedSchedule, sentMs: number): void {
    const span = { schedule, fromMs: sentMs, begunMs: this.#world.nowMs };
    this.#may.push({ ...span, toMs: undefined, endedMs: undefined });
    this.#must.push({ ...span, toMs: undefined, endedMs: undefined });
    this.#runningMs = this.#world.nowMs;
  }

  #end(surelyUntilMs: number, atMostUntilMs: number): void {
    for (const span of [...this.#must, ...this.#may]) {
      span.toMs ??= surelyUntilMs;
      span.endedMs ??= atMostUntilMs;
    }
    this.#runningMs = undefined;
  }

  /** An answer has shown an occurrence. What is over stays as it is. */
  noteOccurrence(shown: ShownOccurrence): void {
    const before = this.#known.get(shown.id);
    this.#known.set(shown.id, shown);
    if (before === undefined) return;
    if (OVER.has(before.status) && JSON.stringify(before) !== JSON.stringify(shown))
      this.#complain(
        `the occurrence ${shown.id} was over as ${before.status} and is ${JSON.stringify(shown)} afterwards`,
      );
    if (shown.attempts < before.attempts && shown.status !== 'skipped')
      this.#complain(`the occurrence ${shown.id} has ${shown.attempts} attempts and had ${before.attempts}`);
  }

  /** All occurrences were listed. Those that were shown before are there. */
  noteList(all: readonly ShownOccurrence[]): void {
    for (const occurrence of all) this.noteOccurrence(occurrence);
    const ids = new Set(all.map(({ id }) => id));
    const [{ id: oldest = '' } = {}] = all;
    for (const id of this.#known.keys())
      if (!ids.has(id) && (all.length < KEPT || id > oldest)) {
        this.#complain(`the occurrence ${id} was shown and is missing`);
        this.#known.delete(id);
      }
    this.noteOrder(all);
  }

  /** Some occurrences were listed one after the other. The instants are in their order. */
  noteOrder(listed: readonly ShownOccurrence[]): void {
    let lastMs = Number.NEGATIVE_INFINITY;
    for (const { id, dueAt, lastDueAt, trigger } of listed) {
      if (trigger !== 'schedule') continue;
      if (Date.parse(dueAt) <= lastMs)
        this.#complain(
          `the occurrence ${id} is due at ${dueAt}, and one before it at the same time or later`,
        );
      lastMs = Date.parse(lastDueAt ?? dueAt);
    }
  }

  /** Returns the number of attempts of all occurrences. Exact unless the oldest ones were removed. */
  get attempts(): number {
    return [...this.#known.values()].reduce((sum, { attempts }) => sum + attempts, 0);
  }

  /** Judges the job at the end, when all of its occurrences are over. */
  judge(all: readonly ShownOccurrence[], runs: readonly ShownRun[]): void {
    this.noteList(all);
    this.#judgeInstants(all);
    this.#judgeShared(all);
    this.#judgeMissed(all);
    this.#judgeRuns(all, runs);
    if (!this.#world.clock.wasSetBack) {
      this.#judgeOverlap(all);
      this.#judgeFailures(all);
    }
  }

  /** Each instant has an occurrence, and each occurrence has an instant. */
  #judgeInstants(all: readonly ShownOccurrence[]): void {
    const { clock, nowMs } = this.#world;
    const met = all
      .filter(({ trigger }) => trigger === 'schedule')
      .map(({ dueAt, lastDueAt = dueAt }) => [Date.parse(dueAt), Date.parse(lastDueAt)] as const);
    const firstKeptMs = all.length < KEPT ? 0 : (met[0]?.[0] ?? Number.POSITIVE_INFINITY);
    for (const { schedule, begunMs, toMs = nowMs, endedMs = nowMs } of this.#must) {
      const afterMs = clock.latestBetween(this.#createdMs, begunMs);
      // The server may have missed a time that the clock showed only for a moment before it was set back.
      const untilMs = clock.earliestBetween(Math.max(begunMs, toMs), Math.max(begunMs, endedMs));
      for (const ms of this.#instants(schedule, Math.max(afterMs, firstKeptMs - 1), untilMs - ROUNDING_MS)) {
        if (met.some(([first, last]) => first <= ms && ms <= last)) continue;
        this.#complain(`the instant ${textOf(ms)} of ${JSON.stringify(schedule)} has no occurrence`);
        break;
      }
    }
    for (const [first, last] of met)
      for (const ms of new Set([first, last]))
        if (!this.#may.some((span) => this.#allows(span, ms)))
          this.#complain(`there is an occurrence at ${textOf(ms)}, which is no instant of the job`);
  }

  /** One occurrence stands for many instants only if a hundred later ones have an occurrence each. */
  #judgeShared(all: readonly ShownOccurrence[]): void {
    const ofSchedule = all.filter(({ trigger }) => trigger === 'schedule');
    for (const [at, { id, dueAt, lastDueAt }] of ofSchedule.entries()) {
      const later = ofSchedule.length - at - 1;
      if (lastDueAt !== undefined && later < MISSED_EACH)
        this.#complain(
          `the occurrence ${id} stands for all instants from ${dueAt} to ${lastDueAt}, and only ${later} later ones have one each`,
        );
    }
  }

  #allows({ schedule, fromMs, begunMs, endedMs = this.#world.nowMs }: Span, ms: number): boolean {
    const { clock } = this.#world;
    const afterMs = clock.earliestBetween(fromMs, begunMs) - ROUNDING_MS;
    const untilMs = clock.latestBetween(fromMs, Math.max(fromMs, endedMs)) + ROUNDING_MS;
    return ms > afterMs && ms <= untilMs && this.#instants(schedule, ms - 1, ms).length === 1;
  }

  /** A missed instant is skipped because a later one has fired in its place, or because the job does not catch up. */
  #judgeMissed(all: readonly ShownOccurrence[]): void {
    const ofSchedule = all.filter(({ trigger }) => trigger === 'schedule');
    for (const [at, { id, status, reason, dueAt }] of ofSchedule.entries()) {
      if (this.#catchUp === 'none' && status !== 'skipped' && !this.#world.clock.wasSetBack) {
        const lateMs = timeOfId(id) - Date.parse(dueAt);
        if (lateMs > MAX_LATE_MS)
          this.#complain(`the occurrence ${id} has fired ${lateMs} ms after its instant`);
      }
      if (this.#catchUp === 'none' || reason?.code !== 'missed') continue;
      const next = ofSchedule.slice(at + 1).find((later) => later.reason?.code !== 'missed');
      if (next === undefined)
        this.#complain(
          `the occurrence ${id} at ${dueAt} was skipped, and no later instant has fired in its place`,
        );
    }
  }

  /** An attempt has at most one run. Each run is over, and says the same as its occurrence. */
  #judgeRuns(all: readonly ShownOccurrence[], runs: readonly ShownRun[]): void {
    const [{ id: oldest = '' } = {}] = all;
    const byId = new Map(all.map((occurrence) => [occurrence.id, occurrence]));
    const counts = new Map<string, number>();
    for (const { id, status, metadata } of runs) {
      const of = metadata?.occurrence ?? '';
      counts.set(of, (counts.get(of) ?? 0) + 1);
      if (status === 'running') this.#complain(`the run ${id} of the occurrence ${of} does not end`);
      if (!byId.has(of) && (all.length < KEPT || of > oldest))
        this.#complain(`the run ${id} belongs to the occurrence ${of}, which is missing`);
    }
    const runsById = new Map(runs.map((run) => [run.id, run]));
    for (const { id, status, runId, attempts, reason } of all) {
      const count = counts.get(id) ?? 0;
      if (count > attempts) this.#complain(`the occurrence ${id} has ${attempts} attempts and ${count} runs`);
      if (!OVER.has(status)) this.#complain(`the occurrence ${id} does not end: it is ${status}`);
      if (runId === null) {
        if (status === 'completed' || (status === 'cancelled' && reason?.code !== 'superseded'))
          this.#complain(`the occurrence ${id} is ${status} without a run`);
        continue;
      }
      const run = runsById.get(runId);
      if (run === undefined || run.metadata?.occurrence !== id) {
        this.#complain(`the run ${runId} of the occurrence ${id} is ${JSON.stringify(run?.metadata)}`);
        continue;
      }
      const isLost = ENDS_BESIDE_RUNS.has(reason?.code ?? '');
      const wasRetried = attempts > 1 && status === 'failed'; // the last attempt may have had no run
      if (run.status !== status && !isLost && !wasRetried)
        this.#complain(`the occurrence ${id} is ${status}, and its run ${runId} is ${run.status}`);
    }
  }

  /** One occurrence is in progress at a time, and only then an instant is skipped as an overlap. */
  #judgeOverlap(all: readonly ShownOccurrence[]): void {
    const worked = all.filter(
      ({ status, reason }) => status !== 'skipped' || REFUSALS.has(reason?.code ?? ''),
    );
    for (const [at, { id, startedAt }] of worked.entries()) {
      const before = worked[at - 1];
      if (before === undefined || startedAt === null) continue;
      if (before.finishedAt !== null && before.finishedAt <= startedAt) continue;
      this.#complain(
        `the occurrence ${id} has begun at ${startedAt}, and ${before.id} was in progress until ${before.finishedAt}`,
      );
    }
    // An occurrence that waits for its session is in progress, also when it is skipped at last because there is none.
    const begun = all.filter(({ reason }) => reason?.code !== 'overlap' && reason?.code !== 'missed');
    for (const { id, reason, finishedAt } of all) {
      if (reason?.code !== 'overlap' || (all.length >= KEPT && id < (begun[0]?.id ?? ''))) continue;
      const isReal = begun.some(
        (one) => one.dueAt <= finishedAt! && (one.finishedAt === null || one.finishedAt >= finishedAt!),
      );
      if (!isReal)
        this.#complain(`the occurrence ${id} was skipped at ${finishedAt}, and none was in progress then`);
    }
  }

  /** After failures in a row, the schedule fires only when somebody has resumed the job. */
  #judgeFailures(all: readonly ShownOccurrence[]): void {
    const { clock } = this.#world;
    const worked = all.filter(({ status }) => status !== 'skipped');
    for (const [at, { id, trigger, startedAt, finishedAt }] of worked.entries()) {
      const last = worked.slice(Math.max(0, at - MAX_FAILURES), at);
      if (trigger !== 'schedule' || last.length < MAX_FAILURES) continue;
      if (last.some(({ status }) => status !== 'failed')) continue;
      const sinceMs = Date.parse(last[0]!.dueAt);
      const wasResumed = this.#resumed.some((ms) => {
        const shownMs = clock.earliestBetween(ms, ms);
        return shownMs >= sinceMs - MAX_LATE_MS && shownMs <= Date.parse(startedAt ?? finishedAt!);
      });
      if (!wasResumed)
        this.#complain(
          `the occurrence ${id} was fired by the schedule after ${MAX_FAILURES} failures in a row`,
        );
    }
  }

  /** Returns the instants of a schedule after one time and not after another one. */
  #instants(schedule: SimulatedSchedule, afterMs: number, untilMs: number): number[] {
    if ('at' in schedule) {
      const ms = Date.parse(schedule.at);
      return ms > afterMs && ms <= untilMs ? [ms] : [];
    }
    const isCron = 'cron' in schedule;
    const stepMs = 1000 * (isCron ? Number(/^\*\/(\d+) /.exec(schedule.cron)?.[1]) : schedule.everyS);
    const anchorMs = isCron ? 0 : this.#anchorMs; // all seconds of steps that divide a minute
    const instants: number[] = [];
    const first = Math.max(Math.floor((afterMs - anchorMs) / stepMs) + 1, isCron ? 0 : 1);
    for (let ms = anchorMs + first * stepMs; ms <= untilMs; ms += stepMs) instants.push(ms);
    return instants;
  }

  #complain(text: string): void {
    this.#world.problem(`${this.#name}: ${text}`);
  }
}

function textOf(ms: number): string {
  return new Date(ms).toISOString();
}
