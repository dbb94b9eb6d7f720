/** The lives of a notebook session: it opens, dies, sleeps, wakes and closes. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { type NotebookSessionEvent, sessionStatus } from '#machines/notebook-session.ts';
import { SeededRandom } from '#test/support/random.ts';
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
  startSession,
  suspend,
  wake,
} from './session-fixture.ts';
import { assertInvariants, BROKEN, STATES, WAY } from './session-states.ts';

test('a session announces its states in order, with one start and one stop of the kernel', (t) => {
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

test('a reopened session keeps nothing of its last life', (t) => {
  const s = startSession(t);
  s.send({ ...open, arguments: ['--month', '3'], metadata: { team: 'a' } } as NotebookSessionEvent);
  s.send(ready, execute(), exited(EARLY_MS), close, exited());
  s.send({ ...open, arguments: [], mode: 'run', at: '2026-02-02T00:00:00.000Z' } as NotebookSessionEvent);
  assert.deepEqual(s.context(), {
    ...INPUT,
    environmentId: 'env_1',
    mode: 'run',
    arguments: [],
    openedAt: '2026-02-02T00:00:00.000Z',
    openedBy: { userId: 'ada', readsDatasources: true },
    lifetime: { ttlS: null, idleTimeoutS: null },
    metadata: null,
    closedBy: null,
    work: null,
    phases: {},
    failure: null,
    kernelEnd: null,
    earlyDeaths: 0,
  });
});

test('a session keeps the reason for the end of its last kernel until the session is opened again', (t) => {
  const ends: readonly (readonly [string | null, ...NotebookSessionEvent[]])[] = [
    [null, open, ready],
    ['idle', hibernate, wake, ready],
    [OOM.code, exited(LATE_MS), ready],
    ['hibernated', { type: 'hibernate', reason: 'hibernated' }],
    ['server_stopped', wake, ready, restored, ready],
    ['server_stopped', suspend],
    [null, close, open],
  ];
  const s = startSession(t);
  for (const [end, ...events] of ends) {
    s.send(...events);
    assert.equal(s.context().kernelEnd, end, events.map(({ type }) => type).join());
  }
});

test('when the kernel cannot take work, the work and the session fail', (t) => {
  const s = startSession(t);
  s.send(open, ready);
  s.kernel.breaks = 'order';
  s.send(execute());
  assert.deepEqual(s.ended, [{ work: { kind: 'run', id: 'run_1' }, status: 'failed', failure: BROKEN }]);
  assert.deepEqual([s.state(), s.context().failure], ['failed.resting', BROKEN]);
});

test('a kernel that cannot be started fails the session, and a later wake starts another kernel', (t) => {
  const s = startSession(t);
  s.kernel.breaks = 'start';
  s.send(open);
  assert.deepEqual([s.state(), s.context().failure], ['failed.resting', BROKEN]);
  s.clock.increment(5_000);
  s.send(wake, ready);
  assert.deepEqual([s.state(), s.context().failure, s.kernel.starts], ['live.ready', null, 1]);
});

test('a bound conversation closes when its notebook session begins to close, before the end of the kernel', (t) => {
  for (const state of STATES.filter((state) => state !== 'closed')) {
    const s = startSession(t);
    WAY[state](s);
    assert.equal(s.bound.closes, state === 'live.closing' ? 1 : 0, state);
    s.send(close);
    assert.ok(s.bound.closes > 0, state);
  }
});

test('a session that gets `close` closes even when stopping its kernel fails', (t) => {
  const s = startSession(t);
  s.send(open, ready);
  s.kernel.breaks = 'order';
  s.send(close);
  assert.deepEqual([s.state(), s.releases], ['closed', ['env_1']]);
  assert.deepEqual(s.notices.at(-1), { type: 'session.closed', reason: 'closed' });
});

test('close is taken in every state but closed, and releases the environment once', (t) => {
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

test('in every state, the first user who closes a session is announced, and a session that ends by itself names nobody', (t) => {
  for (const state of STATES.filter((state) => state !== 'closed' && state !== 'live.closing')) {
    const s = startSession(t);
    WAY[state](s);
    s.send({ type: 'close', by: 'ada' }, { type: 'close', by: 'bob' }, exited());
    assert.deepEqual(s.notices.at(-1), { type: 'session.closed', reason: 'closed', closedBy: 'ada' }, state);
    s.send(open, close, exited());
    assert.deepEqual(s.notices.at(-1), { type: 'session.closed', reason: 'closed' }, state);
  }
});

test('work that ends because a session is closed names the user who closed the session', (t) => {
  const s = startSession(t);
  s.send(open, ready, execute(), { type: 'close', by: 'ada' });
  assert.equal(s.ended[0]?.failure?.message, 'The session was closed by ada while this was running.');
});

test('a second close does not restart or prolong the closing', (t) => {
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

test('the end of the kernel host does not count as a crash of the session, and does not reset the count', (t) => {
  const s = startSession(t);
  const lost: NotebookSessionEvent = {
    type: 'kernel.exited',
    uptimeMs: EARLY_MS,
    failure: { code: 'kernel_host_lost', message: 'The host has ended.' },
  };
  s.send(open, exited(EARLY_MS), lost, lost, lost, exited(EARLY_MS));
  assert.deepEqual([s.state(), s.context().earlyDeaths], ['live.restoring.forking', 2]);
  s.send(lost, exited(EARLY_MS));
  assert.equal(s.state(), 'failed.resting');
});

test('a kernel that dies late resets the count of early deaths', (t) => {
  const s = startSession(t);
  s.send(open, exited(EARLY_MS), exited(EARLY_MS), exited(LATE_MS), exited(EARLY_MS), exited(EARLY_MS));
  assert.deepEqual([s.state(), s.context().earlyDeaths], ['live.restoring.forking', 2]);
  s.send(exited(EARLY_MS));
  assert.equal(s.state(), 'failed.resting');
});

test('a failed session is woken only after its pause, and its deaths are then forgotten', (t) => {
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

test('a sleeping session forgets an earlier failure when it wakes', (t) => {
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

test('messages of a replaced kernel are ignored', (t) => {
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

test('random sequences of events keep kernels, work and announcements consistent', (t) => {
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
