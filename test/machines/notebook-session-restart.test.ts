/** Stored sessions after a restart of the server. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { NotebookSessionEvent } from '#machines/notebook-session.ts';
import { cancel, EARLY_MS, execute, exited, open, ready, restored, startSession } from './session-fixture.ts';
import { STATES, type State, WAY } from './session-states.ts';

/** The state after a restart for each stored state, and the number of kernels that it starts. */
const AFTER_RESTART: Record<State, { to: State; starts: number; releases: (string | null)[]; work: null }> = {
  closed: { to: 'closed', starts: 0, releases: [], work: null },
  'live.starting.forking': { to: 'live.restoring.forking', starts: 1, releases: [], work: null },
  'live.starting.installing': { to: 'live.restoring.forking', starts: 1, releases: [], work: null },
  'live.restoring.forking': { to: 'live.restoring.forking', starts: 1, releases: [], work: null },
  'live.restoring.installing': { to: 'live.restoring.forking', starts: 1, releases: [], work: null },
  'live.ready': { to: 'live.restoring.forking', starts: 1, releases: [], work: null },
  'live.busy.running': { to: 'live.restoring.forking', starts: 1, releases: [], work: null },
  'live.busy.cancelling': { to: 'live.restoring.forking', starts: 1, releases: [], work: null },
  'live.busy.killing': { to: 'live.restoring.forking', starts: 1, releases: [], work: null },
  'live.closing': { to: 'closed', starts: 0, releases: ['env_1'], work: null },
  dormant: { to: 'dormant', starts: 0, releases: [], work: null },
  'failed.resting': { to: 'failed.retryable', starts: 0, releases: [], work: null },
  'failed.retryable': { to: 'failed.retryable', starts: 0, releases: [], work: null },
};

for (const state of STATES) {
  test(`a session stored in ${state} comes back as its restart row says`, (t) => {
    const before = startSession(t);
    WAY[state](before);
    const after = startSession(t, before.session.getSnapshot());
    assert.equal(after.kernel.starts, 0, 'a stored state starts no kernel by itself');
    after.send(restored);
    assert.deepEqual(
      {
        to: after.state(),
        starts: after.kernel.starts,
        releases: after.releases,
        work: after.context().work,
      },
      AFTER_RESTART[state],
    );
    assert.deepEqual(after.ended, [], 'a restart ends no work: the crash left it open');
  });
}

test('a restored session starts without early deaths or a failure, and with a new deadline', (t) => {
  const before = startSession(t);
  before.send(open, exited(EARLY_MS), exited(EARLY_MS));
  const after = startSession(t, before.session.getSnapshot());
  after.send(restored);
  assert.deepEqual([after.context().earlyDeaths, after.context().failure], [0, null]);
  after.clock.increment(60_000);
  assert.equal(after.state(), 'failed.resting');
});

test('a restart treats a busy session like the ready session that is stored in its place', (t) => {
  const afterRestart = (...events: NotebookSessionEvent[]) => {
    const before = startSession(t);
    before.send(open, ready, ...events);
    const { state, context, ended, send } = startSession(t, before.session.getSnapshot());
    send(restored);
    return { state: state(), context: context(), ended };
  };
  const fromReady = afterRestart();
  assert.deepEqual(afterRestart(execute()), fromReady);
  assert.deepEqual(afterRestart(execute(), cancel()), fromReady);
});
