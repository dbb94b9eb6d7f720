import assert from 'node:assert/strict';
import test from 'node:test';
import type { ActorId } from '#src/actors/address.ts';
import type { WorkspaceId } from '#src/core/ids.ts';
import type { LiveNotebooks } from '#src/notebook/live-notebooks.ts';
import type { NotebookSessionActors } from '#src/notebook/notebook-session-actors.ts';
import { type CallOptions, SessionWork } from '#src/notebook/work/session-work.ts';
import { WorkSlot } from '#src/notebook/work/work-slot.ts';

const SESSION: ActorId = { workspaceId: 'ws_1' as WorkspaceId, id: 'nb_1' };

/** Returns the events that a session gets for a call that never ends. */
function eventsOf(options: Pick<CallOptions, 'signal' | 'limitMs'>): string[] {
  const events: string[] = [];
  const note = (_: unknown, { type }: { readonly type: string }) => void events.push(type);
  const actors = { ask: note, tell: note } as unknown as NotebookSessionActors;
  const live = { of: () => ({ work: new WorkSlot() }) } as unknown as LiveNotebooks;
  const plan = {
    runId: null,
    steps: [],
    follow: () => undefined,
    conclude: () => ({ status: 'completed', failure: null }) as const,
    cancelRequested: () => undefined,
    ended: () => undefined,
  };
  void new SessionWork(actors, live).call(SESSION, { kind: 'check', edits: true, ...options }, () => plan);
  return events;
}

test('work is interrupted when its caller leaves, also when the caller has left before it begins', () => {
  const caller = new AbortController();
  const events = eventsOf({ signal: caller.signal });
  assert.deepEqual(events, ['execute']);
  caller.abort();
  assert.deepEqual(events, ['execute', 'cancel']);
  assert.deepEqual(eventsOf({ signal: AbortSignal.abort() }), ['execute', 'cancel']);
});

test('work with a limit of time is interrupted at that limit', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const events = eventsOf({ limitMs: 60_000 });
  t.mock.timers.tick(59_999);
  assert.deepEqual(events, ['execute']);
  t.mock.timers.tick(1);
  assert.deepEqual(events, ['execute', 'cancel']);
});
