import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { WorkspaceId } from '#src/base/ids.ts';
import { IdleSessions } from '#src/notebook/sessions/idle-sessions.ts';
import type { NotebookContext } from '#src/notebook/sessions/notebook-context.ts';
import type { NotebookSessionActors } from '#src/notebook/sessions/notebook-session-actors.ts';
import { testContext } from '#test/support/test-context.ts';

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
  const context = testContext<NotebookContext>({
    liveNotebooks,
    ends: { leaving: () => undefined },
    config: { idleTimeoutS: 0.1 },
  });
  using _sessions = new IdleSessions(context, actors as unknown as NotebookSessionActors);
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
