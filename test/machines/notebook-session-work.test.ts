/** Work in a notebook session, and its cancellation. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { NotebookSessionEvent } from '#machines/notebook-session.ts';
import { outcome } from './chart-table.ts';
import {
  cancel,
  close,
  done,
  EARLY_MS,
  execute,
  executeWithin,
  exited,
  OOM,
  open,
  ready,
  STOPPED,
  type StartedSession,
  startSession,
  suspend,
} from './session-fixture.ts';
import { BROKEN, CLOSED, KILLED, STUCK, WAY } from './session-states.ts';

test('work that edits the notebook is refused in run mode, and other work is accepted', (t) => {
  const s = startSession(t);
  s.send({ ...open, mode: 'run' } as NotebookSessionEvent, ready);
  assert.deepEqual(outcome(s.session, execute('run_1', true)), { refused: 'session_not_editable' });
  assert.deepEqual(outcome(s.session, execute('run_1', false)), { to: 'live.busy.running' });
});

test('the end and the cancellation of work that is not in the session are ignored', (t) => {
  const s = startSession(t);
  s.send(open, ready, execute());
  assert.deepEqual(
    [outcome(s.session, done('run_0')), outcome(s.session, cancel('run_0'))],
    ['ignored', 'ignored'],
  );
  s.send(cancel());
  assert.equal(outcome(s.session, done('run_0')), 'ignored');
});

test('a cancel interrupts the kernel at once and kills it after the grace period, each once', (t) => {
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

test('a kernel that answers after the order to kill it gets no more work', (t) => {
  const s = startSession(t);
  WAY['live.busy.killing'](s);
  s.send(done());
  assert.deepEqual([s.state(), s.ended], ['live.busy.killing', []]);
  assert.deepEqual(outcome(s.session, execute('run_2')), { refused: 'session_busy' });
});

test('a kernel that finishes within the grace period is kept, and its answer counts', (t) => {
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

const INTERRUPTED: NotebookSessionEvent = {
  type: 'kernel.done',
  workId: 'run_1',
  status: 'cancelled',
  failure: null,
};

test('work that reaches its deadline is interrupted like cancelled work, but counts as failed', (t) => {
  const s = startSession(t);
  s.send(open, ready, executeWithin(10_000));
  s.clock.increment(10_000);
  assert.deepEqual(s.kernel.orders.at(-1), { type: 'interrupt' });
  s.send(cancel(), INTERRUPTED);
  assert.deepEqual(
    s.ended.map(({ status, failure }) => [status, failure?.code]),
    [['failed', 'timed_out']],
  );
  assert.equal(s.state(), 'live.ready');
});

test('work that ends by itself after the interrupt of its deadline keeps its own result', (t) => {
  const s = startSession(t);
  s.send(open, ready, executeWithin(10_000));
  s.clock.increment(10_000);
  s.send(done());
  assert.deepEqual(
    s.ended.map(({ status, failure }) => [status, failure]),
    [['completed', null]],
  );
});

test('work that was cancelled before its deadline counts as cancelled after the deadline', (t) => {
  const s = startSession(t);
  s.send(open, ready, executeWithin(10_000));
  s.clock.increment(9_999);
  s.send(cancel());
  s.clock.increment(1_000);
  s.send(INTERRUPTED);
  assert.deepEqual(
    s.ended.map(({ status, failure }) => [status, failure]),
    [['cancelled', null]],
  );
});

test('a deadline ends with its work, and does not apply to the next work', (t) => {
  const s = startSession(t);
  s.send(open, ready, executeWithin(10_000), done(), execute('run_2'));
  s.clock.increment(86_400_000);
  assert.equal(s.state(), 'live.busy.running');
});

test('a kernel that ignores the interrupt of a deadline is killed, and the failure reports the kill', (t) => {
  for (const end of [exited(EARLY_MS), undefined]) {
    const s = startSession(t);
    s.send(open, ready, executeWithin(10_000));
    s.clock.increment(10_000);
    s.clock.increment(3_000);
    assert.equal(s.state(), 'live.busy.killing');
    if (end === undefined) s.clock.increment(5_000);
    else s.send(end);
    const [{ status, failure } = {}] = s.ended;
    assert.deepEqual([s.ended.length, status, failure?.code], [1, 'failed', 'timed_out']);
    const cause = end === undefined ? STUCK : KILLED;
    assert.ok(failure?.message.endsWith(cause.message), failure?.message);
    assert.equal(s.context().failure?.code, cause.code);
  }
});

test('closing a session ends work past its deadline like any other work', (t) => {
  const s = startSession(t);
  s.send(open, ready, executeWithin(10_000));
  s.clock.increment(10_000);
  s.send(close, exited());
  assert.deepEqual(
    s.ended.map(({ status, failure }) => [status, failure]),
    [['cancelled', CLOSED]],
  );
});

test('a kernel that dies during an interrupt fails the work with the cause of the death', (t) => {
  const s = startSession(t);
  s.send(open, ready, execute(), cancel(), exited());
  assert.deepEqual(s.ended, [{ work: { kind: 'run', id: 'run_1' }, status: 'failed', failure: OOM }]);
  assert.equal(s.state(), 'live.restoring.forking');
});

test('every way out of busy ends the work exactly once, with the right result', (t) => {
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
