import assert from 'node:assert/strict';
import test from 'node:test';
import { notebookSessionMachine, type SessionEvent, sessionStatus } from '#machines/notebook-session.ts';
import { SeededRandom } from '#test/support/random.ts';
import { leavesOf, outcome, type Table } from './chart-table.ts';
import {
  cancel,
  close,
  done,
  EARLY_MS,
  execute,
  exited,
  hibernate,
  INPUT,
  installed,
  installing,
  LATE_MS,
  OOM,
  open,
  ready,
  restored,
  STOPPED,
  type StartedSession,
  shareEnvironment,
  startSession,
  suspend,
  wake,
} from './session-fixture.ts';

type State =
  | 'closed'
  | 'live.starting.forking'
  | 'live.starting.installing'
  | 'live.restoring.forking'
  | 'live.restoring.installing'
  | 'live.ready'
  | 'live.busy.running'
  | 'live.busy.cancelling'
  | 'live.busy.killing'
  | 'live.closing'
  | 'dormant'
  | 'failed.resting'
  | 'failed.retryable';

const CLOSED = { code: 'session_closed', message: 'The session was closed while this was running.' };
const TIMED_OUT = { code: 'kernel_start_timeout', message: 'The kernel did not become ready in time.' };
const BROKEN = { code: 'kernel_start_failed', message: 'The kernel could not be started or driven.' };
const KILLED = {
  code: 'kernel_killed',
  message:
    'An interrupt did not stop this, so the kernel was killed: the variables of the notebook are lost.',
};
const STUCK = { code: 'kernel_stuck', message: 'The kernel did not end when it was killed.' };

/** The way into each state from the beginning. */
const WAY: Record<State, (s: StartedSession) => void> = {
  closed: () => undefined,
  'live.starting.forking': (s) => s.send(open),
  'live.starting.installing': (s) => s.send(open, installing),
  'live.restoring.forking': (s) => s.send(open, ready, exited()),
  'live.restoring.installing': (s) => s.send(open, ready, exited(), installing),
  'live.ready': (s) => s.send(open, ready),
  'live.busy.running': (s) => s.send(open, ready, execute()),
  'live.busy.cancelling': (s) => s.send(open, ready, execute(), cancel()),
  'live.busy.killing': (s) => {
    s.send(open, ready, execute(), cancel());
    s.clock.increment(3_000);
  },
  'live.closing': (s) => s.send(open, ready, close),
  dormant: (s) => s.send(open, ready, suspend),
  'failed.resting': (s) => s.send(open, exited(EARLY_MS), exited(EARLY_MS), exited(EARLY_MS)),
  'failed.retryable': (s) => {
    s.send(open, exited(EARLY_MS), exited(EARLY_MS), exited(EARLY_MS));
    s.clock.increment(5_000);
  },
};
const STATES = Object.keys(WAY) as State[];

const EVENTS: Record<SessionEvent['type'], SessionEvent> = {
  shareEnvironment: shareEnvironment(),
  bindAgent: { type: 'bindAgent' },
  changeSaved: { type: 'changeSaved' },
  open,
  execute: execute('run_2'),
  cancel: cancel(),
  close,
  wake,
  suspend,
  hibernate,
  restored,
  'kernel.installing': installing,
  'kernel.installed': installed,
  'kernel.ready': ready,
  'kernel.done': done(),
  'kernel.exited': exited(),
};

const TABLE: Table<State, SessionEvent['type']> = {
  closed: {
    shareEnvironment: { refused: 'notebook_not_ready' },
    bindAgent: { refused: 'notebook_not_ready' },
    changeSaved: { to: 'closed' },
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
  test(`a session in ${state} takes, refuses or passes over every event as its row says`, (t) => {
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

test('the table has a row for every state of the chart but the one that is left at once', () => {
  assert.deepEqual(leavesOf(notebookSessionMachine), [...STATES, 'closing'].sort());
});

test('an agent of another environment is refused while the session is open, and told to wait when it is not', (t) => {
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

test('a session may become ready by itself exactly while it starts, comes back or works', (t) => {
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

/** What a server that starts again makes of each stored state, and how many kernels that takes. */
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

test('a restored session starts afresh: no early deaths, no failure, a deadline that runs', (t) => {
  const before = startSession(t);
  before.send(open, exited(EARLY_MS), exited(EARLY_MS));
  const after = startSession(t, before.session.getSnapshot());
  after.send(restored);
  assert.deepEqual([after.context().earlyDeaths, after.context().failure], [0, null]);
  after.clock.increment(60_000);
  assert.equal(after.state(), 'failed.resting');
});

type Delay = keyof typeof notebookSessionMachine.implementations.delays & string;
interface Deadline {
  readonly in: State;
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
  cancelGrace: [{ in: 'live.busy.cancelling', ms: 3_000, to: 'live.busy.killing', failure: null }],
  killDeadline: [{ in: 'live.busy.killing', ms: 5_000, to: 'failed.resting', failure: STUCK }],
  closeDeadline: [{ in: 'live.closing', ms: 3_000, to: 'closed', failure: null }],
  retryPause: [{ in: 'failed.resting', ms: 5_000, to: 'failed.retryable', failure: OOM }],
} satisfies Record<Delay, readonly Deadline[]>;

for (const [name, deadlines] of Object.entries(DEADLINES)) {
  for (const { in: from, ms, to, failure } of deadlines) {
    test(`${name} leads from ${from} to ${to} after ${ms} ms and not before`, (t) => {
      const s = startSession(t);
      WAY[from](s);
      s.clock.increment(ms - 1);
      assert.equal(s.state(), from);
      s.clock.increment(1);
      assert.deepEqual([s.state(), s.context().failure], [to, failure]);
      assertInvariants(s, ['run_1']);
    });
  }
}

test('every named delay is held by a test', () => {
  assert.deepEqual(
    Object.keys(DEADLINES).sort(),
    Object.keys(notebookSessionMachine.implementations.delays).sort(),
  );
});

test('a session that waits for nothing of ours is moved by no clock', (t) => {
  for (const state of ['closed', 'live.ready', 'live.busy.running', 'dormant', 'failed.retryable'] as const) {
    const s = startSession(t);
    WAY[state](s);
    s.clock.increment(86_400_000);
    assert.equal(s.state(), state);
  }
});

test('one life is announced in order, and its kernel is started and stopped once', (t) => {
  const s = startSession(t);
  s.send(open, ready, execute(), done(), close, exited());
  assert.deepEqual(s.notices, [
    { type: 'session.status', status: 'starting', reason: null },
    { type: 'session.status', status: 'ready', reason: null },
    { type: 'session.status', status: 'busy', reason: null },
    { type: 'session.status', status: 'ready', reason: null },
    { type: 'session.status', status: 'closing', reason: null },
    { type: 'session.status', status: 'closed', reason: null },
    { type: 'session.closed', reason: 'closed' },
  ]);
  assert.deepEqual(s.kernel.orders, [
    { type: 'execute', work: { kind: 'run', id: 'run_1' } },
    { type: 'stop' },
  ]);
  assert.deepEqual([s.kernel.starts, s.kernel.stops, s.releases], [1, 1, ['env_1']]);
});

test('a session that is opened again has forgotten its last life', (t) => {
  const s = startSession(t);
  s.send({ ...open, arguments: ['--month', '3'] } as SessionEvent);
  s.send(ready, execute(), exited(EARLY_MS), close, exited());
  s.send({ ...open, arguments: [], mode: 'run', at: '2026-02-02T00:00:00.000Z' } as SessionEvent);
  assert.deepEqual(s.context(), {
    ...INPUT,
    environmentId: 'env_1',
    mode: 'run',
    arguments: [],
    openedAt: '2026-02-02T00:00:00.000Z',
    openedBy: { userId: 'ada', readsDatasources: true },
    work: null,
    phases: {},
    failure: null,
    earlyDeaths: 0,
  });
});

test('work that edits is refused in run mode, other work is taken', (t) => {
  const s = startSession(t);
  s.send({ ...open, mode: 'run' } as SessionEvent, ready);
  assert.deepEqual(outcome(s.session, execute('run_1', true)), { refused: 'session_not_editable' });
  assert.deepEqual(outcome(s.session, execute('run_1', false)), { to: 'live.busy.running' });
});

test('the end and the cancellation of other work are ignored', (t) => {
  const s = startSession(t);
  s.send(open, ready, execute());
  assert.deepEqual(
    [outcome(s.session, done('run_0')), outcome(s.session, cancel('run_0'))],
    ['ignored', 'ignored'],
  );
  s.send(cancel());
  assert.equal(outcome(s.session, done('run_0')), 'ignored');
});

test('cancelling interrupts at once and kills after the grace, each once', (t) => {
  const s = startSession(t);
  s.send(open, ready, execute(), cancel(), cancel());
  s.clock.increment(3_000);
  s.send(cancel());
  assert.deepEqual(s.kernel.orders, [
    { type: 'execute', work: { kind: 'run', id: 'run_1' } },
    { type: 'interrupt' },
    { type: 'kill' },
  ]);
});

test('a kernel that was killed for a cancellation is replaced, and the work is cancelled with the cause', (t) => {
  const s = startSession(t);
  WAY['live.busy.killing'](s);
  s.send(exited(EARLY_MS));
  assert.deepEqual(s.ended, [{ work: { kind: 'run', id: 'run_1' }, status: 'cancelled', failure: KILLED }]);
  assert.deepEqual([s.state(), s.kernel.starts, s.kernel.stops], ['live.restoring.forking', 2, 1]);
  assert.equal(s.context().earlyDeaths, 0, 'a death on request does not count');
  s.send(ready);
  assert.equal(s.state(), 'live.ready');
});

test('a kernel that answers after it was told to die is given no more work', (t) => {
  const s = startSession(t);
  WAY['live.busy.killing'](s);
  s.send(done());
  assert.deepEqual([s.state(), s.ended], ['live.busy.killing', []]);
  assert.deepEqual(outcome(s.session, execute('run_2')), { refused: 'session_busy' });
});

test('a kernel that finishes within the grace keeps its memory and its answer', (t) => {
  const s = startSession(t);
  s.send(open, ready, execute(), cancel(), {
    type: 'kernel.done',
    workId: 'run_1',
    status: 'cancelled',
    failure: null,
  });
  assert.deepEqual(s.ended, [{ work: { kind: 'run', id: 'run_1' }, status: 'cancelled', failure: null }]);
  assert.deepEqual([s.state(), s.kernel.starts, s.kernel.stops], ['live.ready', 1, 0]);
  s.clock.increment(86_400_000);
  assert.equal(s.state(), 'live.ready', 'the grace of the cancelled work no longer runs');
});

test('a kernel that dies while it is interrupted fails the work with its cause', (t) => {
  const s = startSession(t);
  s.send(open, ready, execute(), cancel(), exited());
  assert.deepEqual(s.ended, [{ work: { kind: 'run', id: 'run_1' }, status: 'failed', failure: OOM }]);
  assert.equal(s.state(), 'live.restoring.forking');
});

test('every way out of busy ends the work exactly once, and says how', (t) => {
  const ways: Record<string, [(s: StartedSession) => void, { status: string; failure: unknown }]> = {
    'the kernel is done': [(s) => s.send(done()), { status: 'completed', failure: null }],
    'the kernel dies': [(s) => s.send(exited()), { status: 'failed', failure: OOM }],
    'the session is closed': [(s) => s.send(close, exited()), { status: 'cancelled', failure: CLOSED }],
    'closing takes too long': [
      (s) => {
        s.send(close);
        s.clock.increment(3_000);
      },
      { status: 'cancelled', failure: CLOSED },
    ],
    'the server stops': [(s) => s.send(suspend), { status: 'failed', failure: STOPPED }],
    'the kill ladder ends in a death': [
      (s) => {
        s.send(cancel());
        s.clock.increment(3_000);
        s.send(exited());
      },
      { status: 'cancelled', failure: KILLED },
    ],
    'the kernel cannot even be killed': [
      (s) => {
        s.send(cancel());
        s.clock.increment(3_000);
        s.clock.increment(5_000);
      },
      { status: 'cancelled', failure: STUCK },
    ],
    'the session is closed while cancelling': [
      (s) => s.send(cancel(), close, exited()),
      { status: 'cancelled', failure: CLOSED },
    ],
    'the session is closed while killing': [
      (s) => {
        s.send(cancel());
        s.clock.increment(3_000);
        s.send(close, done(), exited());
      },
      { status: 'cancelled', failure: CLOSED },
    ],
    'the driver of the kernel throws': [
      (s) => {
        s.kernel.breaks = 'order';
        s.send(cancel());
      },
      { status: 'failed', failure: BROKEN },
    ],
  };
  for (const [name, [leave, end]] of Object.entries(ways)) {
    const s = startSession(t);
    s.send(open, ready, execute());
    leave(s);
    s.send(done(), exited(), suspend);
    s.clock.increment(86_400_000);
    assert.deepEqual(s.ended, [{ work: { kind: 'run', id: 'run_1' }, ...end }], name);
  }
});

test('work that the kernel cannot take is failed, and the session with it', (t) => {
  const s = startSession(t);
  s.send(open, ready);
  s.kernel.breaks = 'order';
  s.send(execute());
  assert.deepEqual(s.ended, [{ work: { kind: 'run', id: 'run_1' }, status: 'failed', failure: BROKEN }]);
  assert.deepEqual([s.state(), s.context().failure], ['failed.resting', BROKEN]);
});

test('a kernel that cannot be started fails the session, and a later wake starts another', (t) => {
  const s = startSession(t);
  s.kernel.breaks = 'start';
  s.send(open);
  assert.deepEqual([s.state(), s.context().failure], ['failed.resting', BROKEN]);
  s.clock.increment(5_000);
  s.send(wake, ready);
  assert.deepEqual([s.state(), s.context().failure, s.kernel.starts], ['live.ready', null, 1]);
});

test('what is bound to a session closes when the session begins to, not when its kernel is gone', (t) => {
  for (const state of STATES.filter((state) => state !== 'closed')) {
    const s = startSession(t);
    WAY[state](s);
    assert.equal(s.bound.closes, state === 'live.closing' ? 1 : 0, state);
    s.send(close);
    assert.ok(s.bound.closes > 0, state);
  }
});

test('a session that is told to close closes even when its kernel cannot be told', (t) => {
  const s = startSession(t);
  s.send(open, ready);
  s.kernel.breaks = 'order';
  s.send(close);
  assert.deepEqual([s.state(), s.releases], ['closed', ['env_1']]);
  assert.deepEqual(s.notices.at(-1), { type: 'session.closed', reason: 'closed' });
});

test('close is taken in every state but closed, and gives the environment back once', (t) => {
  for (const state of STATES.filter((state) => state !== 'closed')) {
    const s = startSession(t);
    WAY[state](s);
    s.send(close, close, exited(), close);
    assert.deepEqual([s.state(), s.releases], ['closed', ['env_1']], state);
    assert.deepEqual(
      s.notices.filter(({ type }) => type === 'session.closed'),
      [{ type: 'session.closed', reason: 'closed' }],
      state,
    );
  }
});

test('closing again neither begins anew nor takes longer', (t) => {
  const s = startSession(t);
  s.send(open, ready, close);
  s.clock.increment(2_999);
  s.send(close);
  s.clock.increment(1);
  assert.equal(s.state(), 'closed');
  assert.deepEqual(s.kernel.orders, [{ type: 'stop' }]);
});

test('the third early death in a row fails the session', (t) => {
  const s = startSession(t);
  s.send(open, exited(EARLY_MS), ready, exited(EARLY_MS));
  assert.equal(s.state(), 'live.restoring.forking');
  s.send(ready, execute(), exited(EARLY_MS));
  assert.deepEqual([s.state(), s.context().failure], ['failed.resting', OOM]);
  assert.deepEqual(s.ended, [{ work: { kind: 'run', id: 'run_1' }, status: 'failed', failure: OOM }]);
  assert.deepEqual(s.notices.at(-1), { type: 'session.status', status: 'failed', reason: OOM.code });
  assert.deepEqual([s.kernel.starts, s.kernel.stops], [3, 3]);
});

test('the end of the kernel host is no death of the session: it neither counts nor forgives', (t) => {
  const s = startSession(t);
  const lost: SessionEvent = {
    type: 'kernel.exited',
    uptimeMs: EARLY_MS,
    failure: { code: 'kernel_host_lost', message: 'The host has ended.' },
  };
  s.send(open, exited(EARLY_MS), lost, lost, lost, exited(EARLY_MS));
  assert.deepEqual([s.state(), s.context().earlyDeaths], ['live.restoring.forking', 2]);
  s.send(lost, exited(EARLY_MS));
  assert.equal(s.state(), 'failed.resting');
});

test('a late death begins the count again', (t) => {
  const s = startSession(t);
  s.send(open, exited(EARLY_MS), exited(EARLY_MS), exited(LATE_MS), exited(EARLY_MS), exited(EARLY_MS));
  assert.deepEqual([s.state(), s.context().earlyDeaths], ['live.restoring.forking', 2]);
  s.send(exited(EARLY_MS));
  assert.equal(s.state(), 'failed.resting');
});

test('a failed session is woken only after its pause, and with its deaths forgotten', (t) => {
  const s = startSession(t);
  WAY['failed.resting'](s);
  s.send(wake);
  s.clock.increment(4_999);
  s.send(wake);
  assert.deepEqual([s.state(), s.kernel.starts], ['failed.resting', 3]);
  s.clock.increment(1);
  s.send(wake);
  assert.deepEqual([s.state(), s.kernel.starts, s.context().earlyDeaths], ['live.restoring.forking', 4, 0]);
  assert.deepEqual(s.notices.at(-1), { type: 'session.status', status: 'restoring', reason: 'resumed' });
});

test('a sleeping session wakes without the failure it went to sleep with', (t) => {
  const s = startSession(t);
  s.send(open, exited(EARLY_MS), suspend);
  assert.equal(s.state(), 'dormant');
  s.send(wake);
  assert.deepEqual(
    [s.state(), s.context().failure, s.context().earlyDeaths],
    ['live.restoring.forking', null, 0],
  );
  assert.deepEqual(s.notices.at(-1), { type: 'session.status', status: 'restoring', reason: 'resumed' });
});

test('a kernel that was replaced cannot speak any more', (t) => {
  const s = startSession(t);
  s.send(open);
  const { say } = s.kernel;
  s.send(exited());
  say(ready);
  say(exited(EARLY_MS));
  assert.deepEqual([s.state(), s.kernel.starts, s.context().earlyDeaths], ['live.restoring.forking', 2, 0]);
});

test('the status that the API shows follows the state', (t) => {
  const shown = STATES.map((state) => {
    const s = startSession(t);
    WAY[state](s);
    return [state, sessionStatus(s.session.getSnapshot())];
  });
  assert.deepEqual(Object.fromEntries(shown), {
    closed: 'closed',
    'live.starting.forking': 'starting',
    'live.starting.installing': 'starting',
    'live.restoring.forking': 'restoring',
    'live.restoring.installing': 'restoring',
    'live.ready': 'ready',
    'live.busy.running': 'busy',
    'live.busy.cancelling': 'busy',
    'live.busy.killing': 'busy',
    'live.closing': 'closing',
    dormant: 'ready',
    'failed.resting': 'failed',
    'failed.retryable': 'failed',
  });
});

test('a session is resident exactly while it has a kernel', (t) => {
  const resident = STATES.filter((state) => {
    const s = startSession(t);
    WAY[state](s);
    return s.session.getSnapshot().hasTag('resident');
  });
  assert.deepEqual(
    resident,
    STATES.filter((state) => state.startsWith('live.')),
  );
});

test('whatever happens in whatever order, kernels, work and announcements stay in step', (t) => {
  const visited = new Set<string>();
  for (let seed = 1; seed <= 300; seed++) {
    const random = new SeededRandom(seed);
    const s = startSession(t);
    const taken: string[] = [];
    for (let step = 0; step < 60; step++) {
      const what = random.below(15);
      const current = s.context().work?.id ?? 'run_0';
      const id = `run_${seed}_${step}`;
      if (what === 0)
        s.kernel.breaks = random.below(8) === 0 ? 'start' : random.below(4) === 0 ? 'order' : null;
      else if (what === 1) s.clock.increment(random.pick([2_999, 3_000, 5_000, 60_000]));
      else if (what === 2) s.send(execute(id));
      else if (what === 3) s.send(cancel(random.below(3) === 0 ? 'run_0' : current));
      else if (what === 4) s.send(done(random.below(3) === 0 ? 'run_0' : current));
      else if (what === 5) s.send(exited(random.below(2) === 0 ? EARLY_MS : LATE_MS));
      else if (what === 6 && random.below(3) > 0) s.send(open);
      else if (what === 7 && random.below(4) === 0) s.send(close);
      else if (what === 8 && random.below(4) === 0) s.send(random.below(2) === 0 ? suspend : hibernate);
      else if (what === 9) s.send(wake);
      else if (what === 10) s.send(open, ready, execute(id));
      else if (what === 14) s.send(random.below(4) === 0 ? installed : installing);
      else s.send(ready);
      if (s.context().work?.id === id || s.ended.some(({ work }) => work.id === id)) taken.push(id);
      visited.add(s.state());
      assertInvariants(s, taken);
    }
    s.session.stop();
    assert.equal(s.kernel.starts, s.kernel.stops, `seed ${seed}: every kernel was stopped`);
  }
  assert.deepEqual([...visited].sort(), [...STATES].sort());
});

/** S1 to S3 of the chart's header. `taken` are the ids of the work that may have been accepted. */
function assertInvariants(s: StartedSession, taken: readonly string[]): void {
  const state = s.state();
  const { work } = s.context();
  assert.equal(s.kernel.starts - s.kernel.stops, state.startsWith('live.') ? 1 : 0, `S1 in ${state}`);
  assert.equal(work !== null, state.startsWith('live.busy.'), `S2 in ${state}`);
  const endedIds = s.ended.map(({ work: { id } }) => id);
  assert.equal(new Set(endedIds).size, endedIds.length, `S3 in ${state}: ended once`);
  const accounted = work === null ? endedIds : [...endedIds, work.id];
  assert.deepEqual(
    accounted.filter((id) => !taken.includes(id)),
    [],
    `S3 in ${state}: nothing else was ended`,
  );
  const begun = s.notices.filter((notice) => notice.type === 'session.status' && notice.status === 'busy');
  assert.equal(accounted.length, begun.length, `S3 in ${state}: what was accepted is ended or still there`);
}

test('a restart makes the same of a busy session as of the ready one that is stored in its place', (t) => {
  const afterRestart = (...events: SessionEvent[]) => {
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
