/**
 * The outbox: events that hooks want, from the commit in which they happen until each hook has a delivery of them.
 *
 * The home of a run or a session writes an event in the commit of the run's end or the session's failure. The home of the workspace
 * reads it, makes the deliveries, and removes it in the same commit. So a kill at any point loses no event. In a workspace whose hooks
 * do not want an event, the event costs one read.
 */

import type { JobReason } from '#machines/job.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import { faultPoint } from '#src/base/fault-points.ts';
import {
  type DeliveryId,
  newId,
  type RunId,
  timeOfId,
  type UserId,
  type WorkspaceId,
} from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { HookEventType, HookFilter } from '#src/contract/wire/hook.ts';
import type { Occurrence } from '#src/contract/wire/job.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import { definitionIn, type JobStates, occurrenceIn } from '#src/jobs/job-states.ts';
import { MAX_TURN_MS, type MovedPlace } from '#src/runtime/homes/place-clock.ts';
import { slotOf } from '#src/runtime/homes/slots.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { type StoreKey, SYSTEM } from '#storage/keys.ts';
import { slotText, timedPlaceOf } from '#storage/lists/timed-places.ts';
import { type HookRecord, hookEvents, hookPlaces, wantedEvents } from '#storage/records/hooks.ts';
import { jobRecords, occurrenceRecords } from '#storage/records/jobs.ts';
import { runIndex } from '#storage/records/runs.ts';
import type { Transaction } from '#storage/transaction.ts';
import { type HookStates, hookIdOf, type StoredDelivery } from './hook-states.ts';

/** An event as it is stored until there are deliveries of it. */
type StoredEvent = {
  readonly at: string;
  /** The conversation that the event is about, because its run or its job may be deleted before the event is told. */
  readonly agentSessionId?: string;
  /** The last hook to which the event was offered, if a turn was too short for all hooks. */
  readonly offeredTo?: string;
} & (
  | {
      readonly type: Extract<HookEventType, `run.${string}`>;
      readonly runId: RunId;
      readonly errorCode: string | null;
    }
  | { readonly type: 'session.failed'; readonly notebookId: string; readonly reason: string | null }
  | ({ readonly type: JobEventType; readonly jobId: string; readonly reason: JobReason | null } & Partial<
      Pick<Occurrence, 'dueAt' | 'runId'>
    > & { readonly occurrenceId?: string })
);
type JobEventType = Extract<HookEventType, `job.${string}`>;

/** An event as hooks compare and send it. */
interface ToldEvent {
  readonly type: string;
  readonly at: string;
  readonly notebookId: string | null;
  readonly jobId: string | null;
  /** The conversation of a prompt, which not every member may know. */
  readonly agentSessionId: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly data: Readonly<Record<string, string | null>>;
}

export interface OutboxParts {
  /** Returns whether the user may know that there is this conversation. */
  readonly mayKnow: (workspaceId: WorkspaceId, userId: UserId, agentSessionId: string) => boolean;
  readonly jobs: Pick<JobStates, 'onOccurrence' | 'onPaused'>;
  /** The URL of the server; undefined when it has none, so that links are paths. */
  readonly publicUrl: string | undefined;
  readonly onPlace: (moved: MovedPlace) => void;
}

export class Outbox {
  readonly #context: RunPlaneContext;
  readonly #states: HookStates;
  readonly #parts: OutboxParts;
  /** The slots of other workers that have events of this turn. */
  readonly #elsewhere = new Set<number>();

  constructor(context: RunPlaneContext, states: HookStates, parts: OutboxParts) {
    this.#context = context;
    this.#states = states;
    this.#parts = parts;
    // In the turn in which the run ends, so that its end and the event are one commit.
    context.runs.onEnded(({ workspaceId }, { runId, status, error }) =>
      this.note(workspaceId, { type: `run.${status}`, runId, errorCode: error?.code ?? null }),
    );
    // In the turns in which an occurrence is over and a job is paused, for the same reason.
    parts.jobs.onOccurrence((_, { workspaceId, id: jobId }, { id: occurrenceId, status, ...occurrence }) => {
      if (status !== 'failed' && status !== 'skipped') return;
      const { reason, dueAt, runId } = occurrence;
      this.note(workspaceId, { type: `job.${status}`, jobId, occurrenceId, reason, dueAt, runId });
    });
    parts.jobs.onPaused((_, { workspaceId, id: jobId }, reason) =>
      this.note(workspaceId, { type: 'job.paused', jobId, reason }),
    );
    context.cluster.onAsked('hook-events', (slots) => {
      for (const slot of Array.isArray(slots) ? slots : [])
        parts.onPlace({ slot: Number(slot), ms: Date.now(), left: null });
    });
  }

  /** Stores an event in the commit of this turn, if a hook of the workspace wants events of its type. */
  note(
    workspaceId: WorkspaceId,
    event: DistributiveOmit<StoredEvent, 'at' | 'agentSessionId' | 'offeredTo'>,
  ): void {
    const { store, cluster } = this.#context;
    if (store.get(wantedEvents, workspaceId)?.includes(event.type) !== true) return;
    const id = newId('hookEvent');
    const ms = timeOfId(id);
    const slot = slotOf(workspaceId);
    const bytes = encoded({ ...event, ...this.#conversationOf(workspaceId, event), at: timestamp(ms) });
    store.write((tx) => {
      tx.put(hookEvents, bytes, workspaceId, id);
      tx.mark(hookPlaces, SYSTEM, slotText(slot), placeOfEvent(workspaceId, id));
    });
    if (cluster.owns(workspaceId)) this.#parts.onPlace({ slot, ms, left: null });
    else this.#announce(slot);
    faultPoint('hook.noted');
  }

  #conversationOf(
    workspaceId: WorkspaceId,
    event: DistributiveOmit<StoredEvent, 'at'>,
  ): Pick<StoredEvent, 'agentSessionId'> {
    const { store } = this.#context;
    if ('jobId' in event) {
      const record = store.get(jobRecords, workspaceId, event.jobId);
      const target = record && definitionIn(record).target;
      return target !== undefined && 'agentSessionId' in target
        ? { agentSessionId: target.agentSessionId }
        : {};
    }
    const entry = 'errorCode' in event ? store.get(runIndex, workspaceId, event.runId) : undefined;
    return entry?.kind === 'agent' ? { agentSessionId: entry.sessionId } : {};
  }

  /** Asks the home of the slot to look, once the events of this turn are on disk. */
  #announce(slot: number): void {
    const { store, cluster } = this.#context;
    this.#elsewhere.add(slot);
    if (this.#elsewhere.size > 1) return;
    const ask = async () => {
      await store.durable();
      const slots = [...this.#elsewhere];
      this.#elsewhere.clear();
      await cluster.askOthers('hook-events', slots);
    };
    unawaited(ask(), 'outbox: the announcement of events');
  }

  /** Returns the place of an event that waits; null when it is gone. */
  placeOf(workspaceId: string, eventId: string): string | null {
    return this.#context.store.has(hookEvents, workspaceId, eventId)
      ? placeOfEvent(workspaceId, eventId)
      : null;
  }

  /**
   * Makes the deliveries of an event, and removes it. An event that many hooks want takes several calls. Its place stays until then, so
   * that the clock attends to it again before later events.
   */
  attend(workspaceId: WorkspaceId, eventId: string): void {
    const { store } = this.#context;
    const endMs = performance.now() + MAX_TURN_MS;
    const bytes = store.get(hookEvents, workspaceId, eventId);
    if (bytes === undefined) return;
    const event: StoredEvent = JSON.parse(Buffer.from(bytes).toString('utf8'));
    const told = this.#toldOf(workspaceId, event);
    const { offeredTo = '' } = event;
    let last: string | undefined;
    for (const hookId of [...this.#states.idsIn(workspaceId)].sort()) {
      if (hookId <= offeredTo) continue;
      if (last !== undefined && performance.now() >= endMs) {
        const rest = encoded({ ...event, offeredTo: last });
        store.write((tx) => tx.put(hookEvents, rest, workspaceId, eventId));
        return;
      }
      this.#offer(workspaceId, hookId, told);
      last = hookId;
    }
    const slot = slotOf(workspaceId);
    const place = placeOfEvent(workspaceId, eventId);
    store.write((tx) => {
      tx.remove(hookEvents, workspaceId, eventId);
      tx.remove(hookPlaces, SYSTEM, slotText(slot), place);
    });
    this.#parts.onPlace({ slot, ms: null, left: place });
    faultPoint('hook.told');
  }

  #offer(workspaceId: WorkspaceId, hookId: string, event: ToldEvent): void {
    const hook = hookIdOf(workspaceId, hookId);
    const stored = this.#states.find(workspaceId, hookId);
    if (stored === undefined || this.#states.isPaused(hook)) return;
    const { definition, record } = stored;
    if (!definition.events.some((type) => type === event.type) || isOlder(event, record)) return;
    if (!matches(definition.filter, event)) return;
    const { agentSessionId } = event;
    if (
      agentSessionId !== null &&
      !this.#parts.mayKnow(workspaceId, record.ownerId as UserId, agentSessionId)
    )
      return;
    this.#states.queue(hook, newDelivery(hookId, event));
  }

  /** Queues a delivery that tests the receiver, and returns it. */
  test(workspaceId: WorkspaceId, hookId: string): StoredDelivery {
    const data = { workspaceId, hookId };
    const event = { type: 'hook.test', at: timestamp(), data, agentSessionId: null };
    const delivery = newDelivery(hookId, event);
    this.#states.queue(hookIdOf(workspaceId, hookId), delivery);
    return delivery;
  }

  #toldOf(workspaceId: WorkspaceId, event: StoredEvent): ToldEvent {
    if ('runId' in event && !('jobId' in event)) return this.#toldOfRun(workspaceId, event);
    if ('jobId' in event) return this.#toldOfJob(workspaceId, event);
    const { type, at, notebookId, reason } = event;
    const link = this.#link(pathOf('getNotebookSession', { sessionId: notebookId }));
    const data = { workspaceId, notebookId, status: 'failed', reason, failedAt: at, link };
    return { type, at, notebookId, jobId: null, agentSessionId: null, metadata: {}, data };
  }

  #toldOfJob(workspaceId: WorkspaceId, event: Extract<StoredEvent, { jobId: string }>): ToldEvent {
    const { type, at, jobId, reason, occurrenceId = null, dueAt = null, runId = null } = event;
    const record = this.#context.store.get(jobRecords, workspaceId, jobId);
    const definition = record && definitionIn(record);
    const target = definition?.target;
    const notebookId = target !== undefined && 'notebookId' in target ? target.notebookId : null;
    const data = {
      workspaceId,
      jobId,
      occurrenceId,
      notebookId,
      runId,
      status: type.slice('job.'.length), // ASCII
      reason: reason?.code ?? null,
      dueAt,
      link: this.#link(pathOf('getJob', { jobId })),
    };
    // A job that prompts an agent is known to the users of the conversation alone.
    const agentSessionId =
      target !== undefined && 'agentSessionId' in target
        ? target.agentSessionId
        : (event.agentSessionId ?? null);
    return { type, at, notebookId, jobId, agentSessionId, metadata: definition?.metadata ?? {}, data };
  }

  #toldOfRun(workspaceId: WorkspaceId, event: Extract<StoredEvent, { errorCode: unknown }>): ToldEvent {
    const { type, at, runId, errorCode } = event;
    // A run that was deleted meanwhile has no entry. Its event is sent with the id alone.
    const entry = this.#context.store.get(runIndex, workspaceId, runId);
    const metadata = entry?.metadata ?? {};
    const sessionId = entry?.sessionId ?? null;
    const job = this.#jobOf(workspaceId, runId, metadata);
    const isAgent = entry?.kind === 'agent';
    const agentSessionId = isAgent ? sessionId : (event.agentSessionId ?? null);
    const notebookId = job?.notebookId ?? (isAgent ? null : sessionId);
    const data = {
      workspaceId,
      runId,
      notebookId,
      agentSessionId,
      jobId: job?.jobId ?? null,
      occurrenceId: job?.occurrenceId ?? null,
      status: type.slice('run.'.length), // ASCII
      errorCode,
      createdAt: entry?.createdAt ?? null,
      finishedAt: entry?.finishedAt ?? at,
      link: this.#link(pathOf('getRun', { runId })),
    };
    return { type, at, notebookId, jobId: data.jobId, agentSessionId, metadata, data };
  }

  /** Returns the occurrence of a job whose run this is. Anybody can write the metadata of a run, so they only name a candidate. */
  #jobOf(workspaceId: string, runId: string, { job: jobId, occurrence }: ToldEvent['metadata']) {
    if (jobId === undefined || occurrence === undefined) return undefined;
    const { store } = this.#context;
    const bytes = store.get(occurrenceRecords, workspaceId, jobId, occurrence);
    const record = store.get(jobRecords, workspaceId, jobId);
    if (bytes === undefined || record === undefined || occurrenceIn(bytes).runId !== runId) return undefined;
    const { target } = definitionIn(record);
    return { jobId, occurrenceId: occurrence, notebookId: 'notebookId' in target ? target.notebookId : null };
  }

  #link(path: string): string {
    return `${this.#parts.publicUrl?.replace(/(?<!\/)\/+$/, '') ?? ''}${path}`;
  }
}

function encoded(event: StoredEvent): Uint8Array {
  return Buffer.from(JSON.stringify(event));
}

type DistributiveOmit<T, Key extends PropertyKey> = T extends unknown ? Omit<T, Key> : never;

function matches({ notebookId, jobId, metadata = {} }: HookFilter, event: ToldEvent): boolean {
  if (notebookId !== undefined && notebookId !== event.notebookId) return false;
  if (jobId !== undefined && jobId !== event.jobId) return false;
  return Object.entries(metadata).every(
    ([key, value]) => Object.hasOwn(event.metadata, key) && event.metadata[key] === value,
  );
}

/** Returns whether the event happened before the hook was created. A hook from the future was created before the clock was set back. */
function isOlder({ at }: ToldEvent, { createdAt }: HookRecord): boolean {
  return createdAt > at && createdAt <= timestamp();
}

function newDelivery(
  hookId: string,
  { type, at, data, agentSessionId }: Pick<ToldEvent, 'type' | 'at' | 'data' | 'agentSessionId'>,
): StoredDelivery {
  const now = timestamp();
  return {
    id: newId<DeliveryId>('delivery'),
    hookId,
    event: type,
    status: 'pending',
    attempts: 0,
    responseStatus: null,
    response: null,
    reason: null,
    payload: JSON.stringify({ type, timestamp: at, data }),
    queuedAt: now,
    lastAttemptAt: null,
    nextAttemptAt: now,
    finishedAt: null,
    createdAt: now,
    ...(agentSessionId !== null && { agentSessionId }),
  };
}

/** Removes the place of an event, if the record with this key is one. The record is about to be removed with its workspace. */
export function unlinkHookEvent(tx: Transaction, [workspaceId, name, id = '']: StoreKey): void {
  if (name !== hookEvents.name) return;
  tx.remove(hookPlaces, SYSTEM, slotText(slotOf(workspaceId)), placeOfEvent(workspaceId, id));
}

function placeOfEvent(workspaceId: string, eventId: string): string {
  return timedPlaceOf(timeOfId(eventId), workspaceId, eventId);
}
