/** The sums of the tokens that members of a workspace have spent with models: one for each member, model and UTC day. */

import { AppError } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { ModelUsage, ModelUsagePage } from '#src/contract/wire/usage.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { checkCursor } from '#storage/lists/listing.ts';
import { type ModelUseRecord, modelUse } from '#storage/records/model-use.ts';
import type { Store } from '#storage/store.ts';
import type { CallUsage } from './models/call-meter.ts';

/** The most days that one request covers. */
const MAX_DAYS = 366;
const DEFAULT_DAYS = 31;
const DAY_MS = 86_400_000;
const DAY_CHARACTERS = '2030-01-01'.length;
/** Sorts after the number of every worker. */
const AFTER_EVERY_WORKER = '~';

const NOTHING: ModelUseRecord = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  calls: 0,
  estimatedCalls: 0,
};

/** The days of a request, from the first to the last, and its page. */
export interface ModelUseQuery {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly after?: string | undefined;
  readonly limit: number;
}

export class ModelUse {
  readonly #store: Store;
  readonly #worker: string;

  /** `worker` is the number of this worker. */
  constructor(store: Store, worker: number) {
    this.#store = store;
    this.#worker = String(worker);
  }

  /** Adds a call to the sums, in this turn's commit. */
  add(workspaceId: WorkspaceId, userId: string, model: string, usage: CallUsage): void {
    const key = [workspaceId, dayOf(Date.now()), userId, model, this.#worker] as const;
    this.#store.write((tx) => {
      const before = unlessDamaged(() => tx.get(modelUse, ...key)) ?? NOTHING;
      const call: ModelUseRecord = {
        inputTokens: usage.inputTokens,
        outputTokens: usage.outputTokens,
        cacheReadTokens: usage.cachedInputTokens,
        cacheWriteTokens: usage.cacheWriteInputTokens,
        calls: 1,
        estimatedCalls: usage.isEstimated ? 1 : 0,
      };
      tx.put(modelUse, added(before, call), ...key);
    });
  }

  /**
   * Returns a page of the sums, oldest day first: those of one user, or of all users. Throws `invalid_request` for days that are
   * none or too many, and `invalid_cursor`.
   */
  page(workspaceId: WorkspaceId, query: ModelUseQuery, userId?: string): ModelUsagePage {
    const { from, to } = periodOf(query);
    checkCursor(query.after, isCursor);
    const after = query.after?.split(' ') ?? [];
    const items: ModelUsage[] = [];
    for (const sum of this.#sums(workspaceId, { from, to }, after, userId)) {
      if (items.length === query.limit) return { from, to, items, nextCursor: cursorOf(items.at(-1)!) };
      items.push(sum);
    }
    return { from, to, items, nextCursor: null };
  }

  /** Yields the sums after those of a day, a user and a model. */
  *#sums(
    workspaceId: WorkspaceId,
    { from, to }: Period,
    after: readonly string[],
    userId: string | undefined,
  ): Generator<ModelUsage> {
    let sum: ModelUsage | undefined;
    for (const { ids, value } of this.#parts(workspaceId, { from, to }, after, userId)) {
      const [day = '', user = '', model = ''] = ids;
      if (sum !== undefined && (sum.day !== day || sum.userId !== user || sum.model !== model)) {
        yield sum;
        sum = undefined;
      }
      // The sum of a damaged part is not known.
      if (value !== undefined) sum = { day, userId: user, model, ...added(sum ?? NOTHING, value) };
    }
    if (sum !== undefined) yield sum;
  }

  *#parts(
    workspaceId: WorkspaceId,
    { from, to }: Period,
    after: readonly string[],
    userId: string | undefined,
  ) {
    const [afterDay = ''] = after;
    const beyond = afterDay < from ? [from] : [...after, AFTER_EVERY_WORKER];
    if (userId === undefined) {
      for (const part of this.#store.listAfter(modelUse, workspaceId, [], beyond)) {
        if ((part.ids[0] ?? '') > to) return;
        yield part;
      }
      return;
    }
    for (const day of daysOf(afterDay < from ? from : afterDay, to)) {
      const isBegun = day === afterDay && after[1] === userId;
      yield* this.#store.listAfter(modelUse, workspaceId, [day, userId], isBegun ? beyond : []);
    }
  }
}

/** The first day and the last. */
interface Period {
  readonly from: string;
  readonly to: string;
}

/** Returns the days of a query. Without `from` it has `DEFAULT_DAYS`, and without `to` it ends today. */
function periodOf({ from, to = dayOf(Date.now()) }: Pick<ModelUseQuery, 'from' | 'to'>): Period {
  const toMs = startOf('to', to);
  const first = from ?? dayOf(toMs - (DEFAULT_DAYS - 1) * DAY_MS);
  if (toMs - startOf('from', first) >= MAX_DAYS * DAY_MS)
    throw invalidDay('from', `is more than ${MAX_DAYS} days before the last one`);
  return { from: first, to };
}

function startOf(name: 'from' | 'to', day: string): number {
  const ms = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(ms) || dayOf(ms) !== day) throw invalidDay(name, 'is no day of the calendar');
  return ms;
}

function invalidDay(name: 'from' | 'to', message: string): AppError {
  const errors = [{ path: `query/${name}`, message }];
  return new AppError('invalid_request', 'The usage of these days cannot be read.', { errors });
}

function* daysOf(from: string, to: string): Generator<string> {
  const last = Date.parse(to);
  for (let ms = Date.parse(from); ms <= last; ms += DAY_MS) yield dayOf(ms);
}

function dayOf(ms: number): string {
  return timestamp(ms).slice(0, DAY_CHARACTERS); // cuts no character: a time is ASCII
}

function cursorOf({ day, userId, model }: ModelUsage): string {
  return `${day} ${userId} ${model}`;
}

function isCursor(text: string): boolean {
  return /^\d{4}-\d\d-\d\d \S+ \S+$/.test(text);
}

function added(one: ModelUseRecord, other: ModelUseRecord): ModelUseRecord {
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
    cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
    calls: one.calls + other.calls,
    estimatedCalls: one.estimatedCalls + other.estimatedCalls,
  };
}
