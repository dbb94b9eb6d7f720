import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { WorkspaceId } from '#src/base/ids.ts';
import { IdleSessions, type IdleSessionsOptions } from '#src/notebook/sessions/idle-sessions.ts';

const LONG_AGO = Number.NEGATIVE_INFINITY;

/** Sweeps once over an unused session, and returns the calls made on it. */
function sweep(t: TestContext, { isLive, isResident }: { isLive: boolean; isResident: boolean }): string[] {
  const done: string[] = [];
  const notebook = {
    workspaceId: 'ws_1' as WorkspaceId,
    sessionId: 'nb_1',
    usedAtMs: LONG_AGO,
    stream: { userCount: 0 },
  };
  let resident = isResident;
  const actors = {
    peek: () => ({ live: isLive, snapshot: { hasTag: () => resident } }),
    tell: (_: unknown, { type }: { type: string }) => {
      done.push(type);
      resident = false;
      return true;
    },
  };
  const liveNotebooks = {
    all: () => [notebook],
    forget: ({ id }: { id: string }) => void done.push(`forget ${id}`),
  };
  t.mock.timers.enable({ apis: ['setInterval'] });
  using _sessions = new IdleSessions({
    actors,
    liveNotebooks,
    ends: { leaving: () => undefined },
    timeoutMs: 100,
  } as unknown as IdleSessionsOptions);
  t.mock.timers.tick(25);
  t.mock.timers.reset();
  return done;
}

test('a session that nobody uses is put to sleep and leaves memory', (t) => {
  assert.deepEqual(sweep(t, { isLive: true, isResident: true }), ['hibernate', 'forget nb_1']);
});

test('a session that is not in memory is not restored only to be put to sleep', (t) => {
  assert.deepEqual(sweep(t, { isLive: false, isResident: true }), ['forget nb_1']);
  assert.deepEqual(sweep(t, { isLive: false, isResident: false }), ['forget nb_1']);
});
