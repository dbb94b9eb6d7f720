/** The effect of each event in each state of a notebook session. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { notebookSessionMachine, type SessionEvent } from '#machines/notebook-session.ts';
import { leavesOf, outcome, type Table } from './chart-table.ts';
import { shareEnvironment, startSession } from './session-fixture.ts';
import { assertInvariants, EVENTS, STATES, type State, WAY } from './session-states.ts';

const TABLE: Table<State, SessionEvent['type']> = {
  closed: {
    shareEnvironment: { refused: 'notebook_not_ready' },
    bindAgent: { refused: 'notebook_not_ready' },
    changeSaved: { to: 'closed' },
    interrupt: { refused: 'session_closed' },
    open: { to: 'live.starting.forking' },
    execute: { refused: 'session_closed' },
    cancel: 'ignored',
    close: { refused: 'session_closed' },
    wake: { refused: 'session_closed' },
    suspend: 'ignored',
    hibernate: { refused: 'session_closed' },
    restored: 'ignored',
    'kernel.installing': 'ignored',
    'kernel.installed': 'ignored',
    'kernel.ready': 'ignored',
    'kernel.done': 'ignored',
    'kernel.exited': 'ignored',
  },
  'live.starting.forking': {
    shareEnvironment: { to: 'live.starting.forking' },
    bindAgent: { refused: 'notebook_not_ready' },
    changeSaved: { refused: 'session_open' },
    interrupt: { to: 'live.starting.forking' },
    open: { refused: 'session_exists' },
    execute: { refused: 'session_not_ready' },
    cancel: 'ignored',
    close: { to: 'live.closing' },
    wake: 'ignored',
    suspend: { to: 'dormant' },
    hibernate: { refused: 'session_not_ready' },
    restored: { to: 'live.restoring.forking' },
    'kernel.installing': { to: 'live.starting.installing' },
    'kernel.installed': 'ignored',
    'kernel.ready': { to: 'live.ready' },
    'kernel.done': 'ignored',
    'kernel.exited': { to: 'live.restoring.forking' },
  },
  'live.starting.installing': {
    shareEnvironment: { to: 'live.starting.installing' },
    bindAgent: { refused: 'notebook_not_ready' },
    changeSaved: { refused: 'session_open' },
    interrupt: { to: 'live.starting.installing' },
    open: { refused: 'session_exists' },
    execute: { refused: 'session_not_ready' },
    cancel: 'ignored',
    close: { to: 'live.closing' },
    wake: 'ignored',
    suspend: { to: 'dormant' },
    hibernate: { refused: 'session_not_ready' },
    restored: { to: 'live.restoring.forking' },
    'kernel.installing': 'ignored',
    'kernel.installed': { to: 'live.starting.forking' },
    'kernel.ready': { to: 'live.ready' },
    'kernel.done': 'ignored',
    'kernel.exited': { to: 'live.restoring.forking' },
  },
  'live.restoring.forking': {
    shareEnvironment: { to: 'live.restoring.forking' },
    bindAgent: { refused: 'notebook_not_ready' },
    changeSaved: { refused: 'session_open' },
    interrupt: { to: 'live.restoring.forking' },
    open: { refused: 'session_exists' },
    execute: { refused: 'session_not_ready' },
    cancel: 'ignored',
    close: { to: 'live.closing' },
    wake: 'ignored',
    suspend: { to: 'dormant' },
    hibernate: { refused: 'session_not_ready' },
    restored: { to: 'live.restoring.forking' },
    'kernel.installing': { to: 'live.restoring.installing' },
    'kernel.installed': 'ignored',
    'kernel.ready': { to: 'live.ready' },
    'kernel.done': 'ignored',
    'kernel.exited': { to: 'live.restoring.forking' },
  },
  'live.restoring.installing': {
    shareEnvironment: { to: 'live.restoring.installing' },
    bindAgent: { refused: 'notebook_not_ready' },
    changeSaved: { refused: 'session_open' },
    interrupt: { to: 'live.restoring.installing' },
    open: { refused: 'session_exists' },
    execute: { refused: 'session_not_ready' },
    cancel: 'ignored',
    close: { to: 'live.closing' },
    wake: 'ignored',
    suspend: { to: 'dormant' },
    hibernate: { refused: 'session_not_ready' },
    restored: { to: 'live.restoring.forking' },
    'kernel.installing': 'ignored',
    'kernel.installed': { to: 'live.restoring.forking' },
    'kernel.ready': { to: 'live.ready' },
    'kernel.done': 'ignored',
    'kernel.exited': { to: 'live.restoring.forking' },
  },
  'live.ready': {
    shareEnvironment: { to: 'live.ready' },
    bindAgent: { to: 'live.ready' },
    changeSaved: { refused: 'session_open' },
    interrupt: { to: 'live.ready' },
    open: { refused: 'session_exists' },
    execute: { to: 'live.busy.running' },
    cancel: 'ignored',
    close: { to: 'live.closing' },
    wake: 'ignored',
    suspend: { to: 'dormant' },
    hibernate: { to: 'dormant' },
    restored: { to: 'live.restoring.forking' },
    'kernel.installing': 'ignored',
    'kernel.installed': 'ignored',
    'kernel.ready': 'ignored',
    'kernel.done': 'ignored',
    'kernel.exited': { to: 'live.restoring.forking' },
  },
  'live.busy.running': {
    shareEnvironment: { to: 'live.busy.running' },
    bindAgent: { to: 'live.busy.running' },
    changeSaved: { refused: 'session_open' },
    interrupt: { to: 'live.busy.running' },
    open: { refused: 'session_exists' },
    execute: { refused: 'session_busy' },
    cancel: { to: 'live.busy.cancelling' },
    close: { to: 'live.closing' },
    wake: 'ignored',
    suspend: { to: 'dormant' },
    hibernate: { refused: 'session_busy' },
    restored: { to: 'live.restoring.forking' },
    'kernel.installing': 'ignored',
    'kernel.installed': 'ignored',
    'kernel.ready': 'ignored',
    'kernel.done': { to: 'live.ready' },
    'kernel.exited': { to: 'live.restoring.forking' },
  },
  'live.busy.cancelling': {
    shareEnvironment: { to: 'live.busy.cancelling' },
    bindAgent: { to: 'live.busy.cancelling' },
    changeSaved: { refused: 'session_open' },
    interrupt: { to: 'live.busy.cancelling' },
    open: { refused: 'session_exists' },
    execute: { refused: 'session_busy' },
    cancel: 'ignored',
    close: { to: 'live.closing' },
    wake: 'ignored',
    suspend: { to: 'dormant' },
    hibernate: { refused: 'session_busy' },
    restored: { to: 'live.restoring.forking' },
    'kernel.installing': 'ignored',
    'kernel.installed': 'ignored',
    'kernel.ready': 'ignored',
    'kernel.done': { to: 'live.ready' },
    'kernel.exited': { to: 'live.restoring.forking' },
  },
  'live.busy.killing': {
    shareEnvironment: { to: 'live.busy.killing' },
    bindAgent: { to: 'live.busy.killing' },
    changeSaved: { refused: 'session_open' },
    interrupt: { to: 'live.busy.killing' },
    open: { refused: 'session_exists' },
    execute: { refused: 'session_busy' },
    cancel: 'ignored',
    close: { to: 'live.closing' },
    wake: 'ignored',
    suspend: { to: 'dormant' },
    hibernate: { refused: 'session_busy' },
    restored: { to: 'live.restoring.forking' },
    'kernel.installing': 'ignored',
    'kernel.installed': 'ignored',
    'kernel.ready': 'ignored',
    'kernel.done': 'ignored',
    'kernel.exited': { to: 'live.restoring.forking' },
  },
  'live.closing': {
    shareEnvironment: { refused: 'notebook_not_ready' },
    bindAgent: { refused: 'notebook_not_ready' },
    changeSaved: { refused: 'session_open' },
    interrupt: { refused: 'session_closed' },
    open: { refused: 'session_exists' },
    execute: { refused: 'session_closed' },
    cancel: 'ignored',
    close: { to: 'live.closing' },
    wake: { refused: 'session_closed' },
    suspend: { to: 'closed' },
    hibernate: { refused: 'session_closed' },
    restored: { to: 'closed' },
    'kernel.installing': 'ignored',
    'kernel.installed': 'ignored',
    'kernel.ready': 'ignored',
    'kernel.done': 'ignored',
    'kernel.exited': { to: 'closed' },
  },
  dormant: {
    shareEnvironment: { to: 'dormant' },
    bindAgent: { refused: 'notebook_not_ready' },
    changeSaved: { refused: 'session_open' },
    interrupt: { to: 'dormant' },
    open: { refused: 'session_exists' },
    execute: { refused: 'session_not_ready' },
    cancel: 'ignored',
    close: { to: 'closed' },
    wake: { to: 'live.restoring.forking' },
    suspend: 'ignored',
    hibernate: { to: 'dormant' },
    restored: 'ignored',
    'kernel.installing': 'ignored',
    'kernel.installed': 'ignored',
    'kernel.ready': 'ignored',
    'kernel.done': 'ignored',
    'kernel.exited': 'ignored',
  },
  'failed.resting': {
    shareEnvironment: { to: 'failed.resting' },
    bindAgent: { refused: 'notebook_not_ready' },
    changeSaved: { refused: 'session_open' },
    interrupt: { to: 'failed.resting' },
    open: { refused: 'session_exists' },
    execute: { refused: 'session_failed' },
    cancel: 'ignored',
    close: { to: 'closed' },
    wake: { refused: 'session_failed' },
    suspend: 'ignored',
    hibernate: { refused: 'session_failed' },
    restored: { to: 'failed.retryable' },
    'kernel.installing': 'ignored',
    'kernel.installed': 'ignored',
    'kernel.ready': 'ignored',
    'kernel.done': 'ignored',
    'kernel.exited': 'ignored',
  },
  'failed.retryable': {
    shareEnvironment: { to: 'failed.retryable' },
    bindAgent: { refused: 'notebook_not_ready' },
    changeSaved: { refused: 'session_open' },
    interrupt: { to: 'failed.retryable' },
    open: { refused: 'session_exists' },
    execute: { refused: 'session_failed' },
    cancel: 'ignored',
    close: { to: 'closed' },
    wake: { to: 'live.restoring.forking' },
    suspend: 'ignored',
    hibernate: { refused: 'session_failed' },
    restored: { to: 'failed.retryable' },
    'kernel.installing': 'ignored',
    'kernel.installed': 'ignored',
    'kernel.ready': 'ignored',
    'kernel.done': 'ignored',
    'kernel.exited': 'ignored',
  },
};

for (const state of STATES) {
  test(`a session in ${state} takes, refuses or ignores every event as its row says`, (t) => {
    const seen = Object.entries(EVENTS).map(([type, event]) => {
      const s = startSession(t);
      WAY[state](s);
      assert.equal(s.state(), state);
      const cell = outcome(s.session, event);
      if (type !== 'restored') assertInvariants(s, ['run_1', 'run_2']);
      return [type, cell];
    });
    assert.deepEqual(Object.fromEntries(seen), TABLE[state]);
  });
}

test('the table has a row for every state of the chart except the one that is left at once', () => {
  assert.deepEqual(leavesOf(notebookSessionMachine), [...STATES, 'closing'].sort());
});

test('an agent of another environment is refused while the session is open, and gets notebook_not_ready while it is closing or closed', (t) => {
  const other = shareEnvironment('env_2');
  const refusals = STATES.map((state) => {
    const s = startSession(t);
    WAY[state](s);
    const cell = outcome(s.session, other);
    return [state, typeof cell === 'object' && 'refused' in cell ? cell.refused : cell];
  });
  const isOver = (state: State) => state === 'closed' || state === 'live.closing';
  assert.deepEqual(
    refusals,
    STATES.map((state) => [state, isOver(state) ? 'notebook_not_ready' : 'environment_differs']),
  );
});

test('a session may become ready by itself only while it starts, is restored or works', (t) => {
  const passing = STATES.filter((state) => {
    const s = startSession(t);
    WAY[state](s);
    return s.session.getSnapshot().hasTag('passing');
  });
  assert.deepEqual(
    passing,
    STATES.filter((state) => /^live\.(starting|restoring|busy)/.test(state)),
  );
});
