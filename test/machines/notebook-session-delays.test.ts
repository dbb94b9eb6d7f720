/** A notebook session as time passes. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { notebookSessionMachine } from '#machines/notebook-session.ts';
import { executeWithin, OOM, open, ready, type StartedSession, startSession } from './session-fixture.ts';
import { assertInvariants, STUCK, type State, TIMED_OUT, WAY } from './session-states.ts';

type Delay = keyof typeof notebookSessionMachine.implementations.delays & string;

interface Deadline {
  readonly in: State;
  /** The way into the state, if it differs from the usual one. */
  readonly way?: (s: StartedSession) => void;
  readonly ms: number;
  readonly to: State;
  readonly failure: { code: string; message: string } | null;
}
const DEADLINES: Record<string, readonly Deadline[]> = {
  installDeadline: [
    { in: 'live.starting.installing', ms: 1_200_000, to: 'failed.resting', failure: TIMED_OUT },
    { in: 'live.restoring.installing', ms: 1_200_000, to: 'failed.resting', failure: TIMED_OUT },
  ],
  startDeadline: [
    { in: 'live.starting.forking', ms: 60_000, to: 'failed.resting', failure: TIMED_OUT },
    { in: 'live.restoring.forking', ms: 60_000, to: 'failed.resting', failure: TIMED_OUT },
  ],
  workDeadline: [
    {
      in: 'live.busy.running',
      way: (s) => s.send(open, ready, executeWithin(10_000)),
      ms: 10_000,
      to: 'live.busy.cancelling',
      failure: null,
    },
  ],
  cancelGrace: [{ in: 'live.busy.cancelling', ms: 3_000, to: 'live.busy.killing', failure: null }],
  killDeadline: [{ in: 'live.busy.killing', ms: 5_000, to: 'failed.resting', failure: STUCK }],
  closeDeadline: [{ in: 'live.closing', ms: 3_000, to: 'closed', failure: null }],
  retryPause: [{ in: 'failed.resting', ms: 5_000, to: 'failed.retryable', failure: OOM }],
} satisfies Record<Delay, readonly Deadline[]>;

for (const [name, deadlines] of Object.entries(DEADLINES)) {
  for (const { in: from, way = WAY[from], ms, to, failure } of deadlines) {
    test(`${name} leads from ${from} to ${to} after ${ms} ms and not before`, (t) => {
      const s = startSession(t);
      way(s);
      s.clock.increment(ms - 1);
      assert.equal(s.state(), from);
      s.clock.increment(1);
      assert.deepEqual([s.state(), s.context().failure], [to, failure]);
      assertInvariants(s, ['run_1']);
    });
  }
}

test('every named delay has a test', () => {
  assert.deepEqual(
    Object.keys(DEADLINES).sort(),
    Object.keys(notebookSessionMachine.implementations.delays).sort(),
  );
});

test('the clock changes only states with a named delay', (t) => {
  for (const state of ['closed', 'live.ready', 'live.busy.running', 'dormant', 'failed.retryable'] as const) {
    const s = startSession(t);
    WAY[state](s);
    s.clock.increment(86_400_000);
    assert.equal(s.state(), state);
  }
});
