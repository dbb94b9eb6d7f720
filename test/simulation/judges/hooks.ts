/**
 * The judge of one hook. A hook delivers each event that it wants, none that has not happened, in order, one request at a time, and
 * nothing while it is paused. The judge knows what its user has sent, what was answered, and what has reached the receiver.
 */
import { createHmac } from 'node:crypto';
import { type Received, receiversOf } from '../world/receivers.ts';
import type { World } from '../world/world.ts';

export interface SimulatedFilter {
  readonly notebookId?: string;
  readonly jobId?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** The events that a hook wants. */
export interface Wish {
  readonly events: readonly string[];
  readonly filter: SimulatedFilter;
}

export interface ShownHook extends Wish {
  readonly id: string;
  readonly url: string;
  readonly paused: boolean;
  readonly pending: number;
  readonly reason: { readonly code: string } | null;
  readonly updatedAt: string;
  readonly secret?: string;
}

export interface ShownDelivery {
  readonly id: string;
  readonly event: string;
  readonly status: string;
  readonly attempts: number;
  readonly reason: { readonly code: string } | null;
  readonly payload: string;
}

/** Something that has happened, as records say at the end. */
export interface Happened {
  readonly type: string;
  /** The run or the occurrence. */
  readonly of: string;
  readonly notebookId: string | null;
  readonly jobId: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly at: string;
  /** Whether a hook whose filter names a job or a notebook knows that it belongs to them. */
  readonly isOfJob: boolean;
}

/** Everything that has happened. */
export interface Facts {
  /** By its type and the run or occurrence. */
  readonly happened: ReadonlyMap<string, Happened>;
  /** The runs and occurrences that have records, with their states. */
  readonly states: ReadonlyMap<string, string>;
  /** The jobs whose occurrences are known, and whether all runs are. */
  readonly jobs: ReadonlySet<string>;
  readonly hasAllRuns: boolean;
}

/** The body of a request. */
interface Told {
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, string | null>>;
}

/** A time in which the hook wants something, as `judges/jobs.ts` has them. */
interface Span extends Wish {
  readonly begunMs: number;
  toMs: number | undefined;
  endedMs: number | undefined;
}

/** How long a request may be on its way that the server has begun before it has said something else. */
const SLACK_MS = 120;
/** An event of which a hook has not heard before it is changed or paused may be lost to it: the server may have been down. */
const GRACE_MS = 6000;
/** After so many attempts a delivery lets others pass (`ATTEMPTS_IN_ORDER`). */
const ATTEMPTS_IN_ORDER = 4;
/** A hook keeps so many deliveries (`MAX_DELIVERIES`). */
const KEPT = 1000;
/** How far the time of a request may be from that of its arrival: a request that was signed before the clock was set is not judged. */
const MAX_SKEW_S = 3;

export class HookJudge {
  readonly #world: World;
  readonly #name: string;
  /** The name of the hook in its URL. */
  readonly #key: string;
  readonly #isOfOneProcess: boolean;
  readonly #createdMs: number;
  readonly #must: Span[] = [];
  /** All events and filters that it may have had. */
  readonly #events = new Set<string>();
  readonly #filters: SimulatedFilter[] = [];
  readonly #secrets = new Set<string>();
  /** Times in which the newest secret is not known. */
  readonly #blind: { readonly fromMs: number; toMs: number }[] = [];
  /** Times in which nothing may be sent. */
  readonly #silent: { readonly fromMs: number; toMs: number }[] = [];
  readonly #deliveries = new Map<string, ShownDelivery>();
  /** When each delivery was shown last. */
  readonly #shownMs = new Map<string, number>();
  /** When an answer has first shown that a delivery had arrived, and when somebody has first asked to send it again. */
  readonly #deliveredMs = new Map<string, number>();
  readonly #replayedMs = new Map<string, number>();
  #runningMs: number | undefined;
  /** Whether the oldest deliveries may have been removed. */
  #wasFull = false;
  #isChanging = false;

  /** The hook was created by a request that was sent at `sentMs`, and whose answer has just come. */
  constructor(world: World, key: string, hook: ShownHook, sentMs: number, isOfOneProcess: boolean) {
    this.#world = world;
    this.#name = `the hook ${hook.id}`;
    this.#key = key;
    this.#createdMs = sentMs;
    this.#isOfOneProcess = isOfOneProcess;
    this.noteSecret(hook.secret, sentMs);
    this.changed(hook, sentMs);
  }

  /** A secret was asked for at `sentMs`; undefined when nobody knows whether there is a new one. */
  noteSecret(secret: string | undefined, sentMs: number): void {
    const open = this.#blind.find(({ toMs }) => toMs === Number.POSITIVE_INFINITY);
    if (secret === undefined) {
      if (open === undefined) this.#blind.push({ fromMs: sentMs, toMs: Number.POSITIVE_INFINITY });
      return;
    }
    this.#secrets.add(secret);
    if (open !== undefined) open.toMs = this.#world.nowMs + SLACK_MS;
  }

  /** An answer to a request that was sent at `sentMs` has shown the hook, which nobody has changed meanwhile. */
  noteSeen(hook: ShownHook, sentMs: number): void {
    if (this.#isChanging) return;
    if (!hook.paused) this.#runningMs = sentMs;
    else {
      if (this.#runningMs !== undefined) this.#end(this.#runningMs);
      this.#beSilent();
    }
  }

  /** A request is sent that may change these members. Further requests may follow before `changed`. */
  changing({ events, filter, paused }: Partial<Wish> & { readonly paused?: boolean }): void {
    const { nowMs } = this.#world;
    for (const span of this.#must) span.toMs ??= Math.min(this.#runningMs ?? nowMs, nowMs);
    if (paused === false) this.#mayspeak();
    this.#isChanging = true;
    this.#mayWant(events, filter);
  }

  /** The changes of the requests since `sentMs` are over, and an answer has shown the hook as it is now. */
  changed(hook: ShownHook, sentMs: number): void {
    this.#isChanging = false;
    this.#end(sentMs);
    this.#mayWant(hook.events, hook.filter);
    if (hook.paused) this.#beSilent();
    else {
      const { events, filter } = hook;
      this.#must.push({
        ...{ events, filter, begunMs: this.#world.nowMs },
        toMs: undefined,
        endedMs: undefined,
      });
      this.#runningMs = this.#world.nowMs;
    }
  }

  #mayWant(events: readonly string[] = [], filter: SimulatedFilter | undefined): void {
    for (const event of events) this.#events.add(event);
    if (filter !== undefined) this.#filters.push(filter);
  }

  /** A deletion is about to be sent. */
  deleting(): void {
    this.#end(this.#world.nowMs);
    this.#isChanging = true;
  }

  deleted(): void {
    this.#beSilent();
  }

  #end(surelyUntilMs: number): void {
    for (const span of this.#must) {
      span.toMs ??= surelyUntilMs;
      span.endedMs ??= this.#world.nowMs;
    }
    this.#runningMs = undefined;
  }

  #beSilent(): void {
    if (!this.#silent.some(({ toMs }) => toMs === Number.POSITIVE_INFINITY))
      this.#silent.push({ fromMs: this.#world.nowMs, toMs: Number.POSITIVE_INFINITY });
  }

  #mayspeak(): void {
    for (const span of this.#silent) span.toMs = Math.min(span.toMs, this.#world.nowMs);
  }

  /** A delivery is about to be asked for once more. */
  replaying(id: string): void {
    if (!this.#replayedMs.has(id)) this.#replayedMs.set(id, this.#world.nowMs);
  }

  /** All deliveries were listed. */
  noteList(all: readonly ShownDelivery[]): void {
    for (const delivery of all) this.noteDelivery(delivery);
    if (all.length < KEPT) return;
    this.#wasFull = true;
    const ids = new Set(all.map(({ id }) => id));
    for (const id of this.#deliveries.keys()) if (!ids.has(id)) this.#deliveries.delete(id);
  }

  /** An answer has shown a delivery. */
  noteDelivery(shown: ShownDelivery): void {
    const before = this.#deliveries.get(shown.id);
    this.#deliveries.set(shown.id, shown);
    this.#shownMs.set(shown.id, this.#world.nowMs);
    if (shown.status === 'delivered' && !this.#deliveredMs.has(shown.id))
      this.#deliveredMs.set(shown.id, this.#world.nowMs);
    if (before === undefined) return;
    if (before.payload !== shown.payload)
      this.#complain(`the delivery ${shown.id} has another payload than before`);
    if (before.attempts > shown.attempts)
      this.#complain(`the delivery ${shown.id} has ${shown.attempts} attempts and had ${before.attempts}`);
    if (before.status !== 'pending' && before.status !== shown.status && !this.#replayedMs.has(shown.id))
      this.#complain(`the delivery ${shown.id} was ${before.status} and is ${shown.status}`);
  }

  /** Returns an event that the hook wants and of which it has no delivery; undefined when there is none. */
  missing({ happened }: Facts): Happened | undefined {
    if (this.#wasFull) return undefined;
    const known = new Set([...this.#deliveries.values()].map(({ payload }) => keyOf(toldIn(payload))));
    return [...happened.values()].find(
      (event) => !known.has(`${event.type} ${event.of}`) && this.#wants(event),
    );
  }

  #wants(event: Happened): boolean {
    const { clock, nowMs } = this.#world;
    const ms = Date.parse(event.at);
    return this.#must.some(({ events, filter, begunMs, toMs = nowMs, endedMs }) => {
      if (!events.includes(event.type) || !matches(filter, event)) return false;
      if (!event.isOfJob && (filter.jobId !== undefined || filter.notebookId !== undefined)) return false;
      const afterMs = clock.latestBetween(Math.min(this.#createdMs, begunMs), begunMs);
      const untilMs =
        endedMs === undefined
          ? Number.POSITIVE_INFINITY
          : clock.earliestBetween(Math.max(begunMs, toMs), Math.max(begunMs, toMs, endedMs)) - GRACE_MS;
      return ms > afterMs && ms < untilMs;
    });
  }

  /** Returns a delivery that is not over; undefined when there is none. */
  get waiting(): ShownDelivery | undefined {
    return [...this.#deliveries.values()].find(({ status }) => status === 'pending');
  }

  /** Judges everything at the end. `isKept`: the hook still exists, so all of its deliveries were listed. */
  judge(facts: Facts, isKept: boolean): void {
    const received = receiversOf(this.#world).received.filter(({ hook }) => hook === this.#key);
    this.#judgeRequests(received);
    this.#judgeSilence(received);
    this.#judgeOrder(received);
    this.#judgeTruth(received, facts);
    if (isKept) this.#judgeRecords(received);
  }

  /** Every request is signed and tells the time. One id has one body. One request is under way at a time. */
  #judgeRequests(received: readonly Received[]): void {
    const bodies = new Map<string, string>();
    for (const request of received) {
      const { body, atMs, clockMs, headers, overlaps } = request;
      const id = idOf(request);
      const before = bodies.get(id);
      bodies.set(id, body);
      if (before !== undefined && before !== body)
        this.#complain(`the id ${id} has two bodies: ${before} and ${body}`);
      if (overlaps) this.#complain(`the request ${id} came while another one was under way`);
      const isBlind = this.#blind.some(({ fromMs, toMs }) => fromMs <= atMs && atMs <= toMs);
      if (!isBlind && !this.#isSigned(request)) this.#complain(`the request ${id} has no valid signature`);
      const skewS = Math.abs(clockMs / 1000 - Number(headers['webhook-timestamp']));
      if (skewS > MAX_SKEW_S && !this.#world.clock.wasSetBetween(atMs - 1000 * MAX_SKEW_S, atMs))
        this.#complain(`the request ${id} says that it is from ${headers['webhook-timestamp']}`);
    }
  }

  #isSigned({ headers, body }: Received): boolean {
    const given = (headers['webhook-signature'] ?? '').split(' ');
    return [...this.#secrets].some((secret) => {
      const key = Buffer.from(secret.slice('whsec_'.length), 'base64'); // the prefix is ASCII
      const text = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
      return given.includes(`v1,${createHmac('sha256', key).update(text).digest('base64')}`);
    });
  }

  /** A hook that is paused or deleted sends nothing, and nothing is sent again after it has arrived. */
  #judgeSilence(received: readonly Received[]): void {
    for (const request of received) {
      const { atMs } = request;
      const id = idOf(request);
      const silence = this.#silent.find(({ fromMs, toMs }) => fromMs + SLACK_MS < atMs && atMs < toMs);
      if (silence !== undefined)
        this.#complain(
          `the request ${id} came ${Math.round(atMs - silence.fromMs)} ms after an answer that the hook is paused or deleted`,
        );
      const deliveredMs = this.#deliveredMs.get(id);
      const replayedMs = this.#replayedMs.get(id) ?? Number.POSITIVE_INFINITY;
      if (deliveredMs !== undefined && deliveredMs + SLACK_MS < atMs && atMs < replayedMs)
        this.#complain(`the request ${id} came after it was shown as delivered`);
    }
  }

  /** Returns how many attempts a delivery may have had. Those after it was shown last, as before a deletion, are known by their requests. */
  #attemptsOf(deliveryId: string, received: readonly Received[]): number {
    const shown = this.#deliveries.get(deliveryId);
    if (shown === undefined) return ATTEMPTS_IN_ORDER;
    const shownMs = this.#shownMs.get(deliveryId) ?? 0;
    const later = received.filter((request) => idOf(request) === deliveryId && request.atMs > shownMs);
    return shown.attempts + later.length;
  }

  /** A delivery that has failed is sent again before any other, four times. First attempts are in the order of the events. */
  #judgeOrder(received: readonly Received[]): void {
    let current: Received | undefined;
    const seen = new Set<string>();
    const lastAt = new Map<string, string>();
    for (const request of received) {
      const id = idOf(request);
      if (current !== undefined && idOf(current) !== id && !isFinished(current)) {
        const attempts = this.#attemptsOf(idOf(current), received);
        if (attempts < ATTEMPTS_IN_ORDER)
          this.#complain(`the request ${id} overtook ${idOf(current)}, which has had ${attempts} attempts`);
      }
      current = request;
      const told = toldIn(request.body);
      if (seen.has(id) || told.type === 'hook.test' || this.#world.clock.wasSetBack) continue;
      seen.add(id);
      const source = this.#isOfOneProcess ? '' : (told.data.jobId ?? keyOf(told));
      const before = lastAt.get(source) ?? '';
      if (told.timestamp < before)
        this.#complain(`the request ${id} tells of ${told.timestamp} after one that tells of ${before}`);
      lastAt.set(source, told.timestamp);
    }
  }

  /** Each event that was told has happened, is wanted, and has one id. */
  #judgeTruth(received: readonly Received[], facts: Facts): void {
    const ids = new Map<string, string>();
    for (const request of received) {
      const id = idOf(request);
      const told = toldIn(request.body);
      if (told.type === 'hook.test') continue;
      const key = keyOf(told);
      const other = ids.get(key);
      ids.set(key, id);
      if (other !== undefined && other !== id && told.type !== 'job.paused' && told.type !== 'session.failed')
        this.#complain(`${key} was sent as ${other} and as ${id}`);
      const wrong = this.#wrongIn(told, facts);
      if (wrong !== undefined) this.#complain(`the request ${id} tells of ${key}, and ${wrong}`);
    }
  }

  #wrongIn(told: Told, { happened, states, jobs, hasAllRuns }: Facts): string | undefined {
    const key = keyOf(told);
    const { data, type } = told;
    const event = happened.get(key);
    const isRun = type.startsWith('run.');
    const isJob = (type === 'job.failed' || type === 'job.skipped') && jobs.has(data.jobId ?? '');
    if (event === undefined && (isRun || isJob)) {
      const state = states.get((isRun ? data.runId : data.occurrenceId) ?? '');
      if (state !== undefined) return `it is ${state}`;
      if (isJob || hasAllRuns) return 'it does not exist';
    }
    if (event !== undefined && isRun && data.finishedAt !== event.at)
      return `says that it has ended at ${data.finishedAt}, and it has at ${event.at}`;
    const { notebookId = null, jobId = null } = data;
    const metadata = event?.metadata;
    const isWanted =
      this.#events.has(type) &&
      this.#filters.some((filter) =>
        matches(metadata === undefined ? { ...filter, metadata: {} } : filter, {
          notebookId,
          jobId,
          metadata: metadata ?? {},
        }),
      );
    return isWanted ? undefined : 'the hook has never wanted it';
  }

  /** The receiver took each delivery that has arrived, and each attempt was stored before its request. */
  #judgeRecords(received: readonly Received[]): void {
    const counts = new Map<string, number>();
    const taken = new Set<string>();
    for (const request of received) {
      const id = idOf(request);
      counts.set(id, (counts.get(id) ?? 0) + 1);
      const { status = 0, endedMs } = request;
      if (status >= 200 && status < 300 && endedMs !== undefined) taken.add(id);
    }
    for (const { id, status, attempts, reason } of this.#deliveries.values()) {
      this.#world.count('deliveries of hooks');
      const count = counts.get(id) ?? 0;
      if (count > attempts)
        this.#complain(`the delivery ${id} has ${attempts} attempts, and ${count} requests came`);
      if (status === 'delivered' && !taken.has(id))
        this.#complain(`the delivery ${id} is shown as delivered, and the receiver has never taken it`);
      if (status === 'dead' && reason === null) this.#complain(`the delivery ${id} is dead without a reason`);
      if (status === 'dead' && reason?.code !== 'gone' && reason?.code !== 'outbox_full')
        this.#complain(`the delivery ${id} is dead because of ${reason?.code}`);
    }
    for (const id of counts.keys())
      if (!this.#wasFull && !this.#deliveries.has(id))
        this.#complain(`the request ${id} came, and there is no such delivery`);
  }

  #complain(text: string): void {
    this.#world.problem(`${this.#name}: ${text}`);
  }
}

function idOf({ headers }: Received): string {
  return headers['webhook-id'] ?? '';
}

function toldIn(body: string): Told {
  const told: Told = JSON.parse(body);
  return told;
}

/** Returns the type of an event and the run or occurrence that it tells of. */
function keyOf({ type, timestamp, data }: Told): string {
  const of = type.startsWith('run.') ? data.runId : data.occurrenceId;
  return `${type} ${of ?? timestamp}`;
}

/** Returns whether the sender has learnt that the receiver takes the message, or wants no more. */
function isFinished({ status = 0, endedMs }: Received): boolean {
  return endedMs !== undefined && ((status >= 200 && status < 300) || status === 410);
}

function matches(
  { notebookId, jobId, metadata = {} }: SimulatedFilter,
  event: Pick<Happened, 'notebookId' | 'jobId' | 'metadata'>,
): boolean {
  if (notebookId !== undefined && notebookId !== event.notebookId) return false;
  if (jobId !== undefined && jobId !== event.jobId) return false;
  return Object.entries(metadata).every(([key, value]) => event.metadata[key] === value);
}
