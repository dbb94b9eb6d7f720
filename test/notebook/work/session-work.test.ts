import assert from 'node:assert/strict';
import test from 'node:test';
import type { Work } from '#machines/notebook-session.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { LiveNotebooks } from '#src/notebook/open/live-notebooks.ts';
import type { WorkPlan } from '#src/notebook/open/work-plan.ts';
import { WorkSlot } from '#src/notebook/open/work-slot.ts';
import type { NotebookSessionActors } from '#src/notebook/sessions/notebook-session-actors.ts';
import { type CallOptions, SessionWork } from '#src/notebook/work/session-work.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';

const SESSION: ActorId = { workspaceId: 'ws_1' as WorkspaceId, id: 'nb_1' };

interface Asked {
  readonly type: string;
  readonly work?: Work;
}

/** Returns the events that a session gets for a call that never ends. */
function askedBy(options: Pick<CallOptions, 'signal' | 'timeoutMs'>): Asked[] {
  const events: Asked[] = [];
  const note = (_: unknown, event: Asked) => void events.push(event);
  const actors = { ask: note, tell: note } as unknown as NotebookSessionActors;
  const live = { of: () => ({ work: new WorkSlot() }) } as unknown as LiveNotebooks;
  const plan: WorkPlan = {
    runId: null,
    steps: [() => 1],
    follow: () => undefined,
    conclude: () => ({ status: 'completed', failure: null }),
    cancelRequested: () => undefined,
    ended: () => undefined,
  };
  void new SessionWork(actors, live).call(
    SESSION,
    { kind: 'check', by: 'ada', edits: true, ...options },
    () => plan,
  );
  return events;
}

function eventsOf(options: Pick<CallOptions, 'signal'>): string[] {
  return askedBy(options).map(({ type }) => type);
}

test('work is interrupted when its caller leaves, even before the work begins', () => {
  const caller = new AbortController();
  const events = askedBy({ signal: caller.signal });
  assert.deepEqual(
    events.map(({ type }) => type),
    ['execute'],
  );
  caller.abort();
  assert.deepEqual(
    events.map(({ type }) => type),
    ['execute', 'cancel'],
  );
  assert.deepEqual(eventsOf({ signal: AbortSignal.abort() }), ['execute', 'cancel']);
});

test('the chart of the session gets and stores the deadline of the work', () => {
  const deadlines = [{ timeoutMs: 60_000 }, {}].map((options) => askedBy(options)[0]?.work?.timeoutMs);
  assert.deepEqual(deadlines, [60_000, undefined]);
});
