import assert from 'node:assert/strict';
import test from 'node:test';
import { createActor } from 'xstate';
import { type RunEvent, type RunNotice, runMachine } from '#machines/run.ts';
import type { Failure } from '#src/base/errors/errors.ts';
import type { RunId, SessionId, WorkspaceId } from '#src/base/ids.ts';
import { leafOf, outcomes, stored, type Table, tell, testTable } from './chart-table.ts';

type State = 'running.active' | 'running.cancelling' | 'running.stale' | 'completed' | 'failed' | 'cancelled';
type Sent = Exclude<RunEvent['type'], 'finish'> | 'finish completed' | 'finish failed' | 'finish cancelled';

const DIVISION: Failure = { code: 'cell_failed', message: 'ZeroDivisionError: division by zero' };
const cancel: RunEvent = { type: 'cancel' };
const restored: RunEvent = { type: 'restored' };
const completed: RunEvent = { type: 'finish', status: 'completed', error: null };
const failed: RunEvent = { type: 'finish', status: 'failed', error: DIVISION };
const cancelled: RunEvent = { type: 'finish', status: 'cancelled', error: null };

const WAY: Record<State, readonly RunEvent[]> = {
  'running.active': [],
  'running.cancelling': [cancel],
  'running.stale': [restored],
  completed: [completed],
  failed: [failed],
  cancelled: [cancelled],
};
const STATES = Object.keys(WAY) as State[];

const EVENTS: Record<Sent, RunEvent> = {
  cancel,
  restored,
  delete: { type: 'delete' },
  'finish completed': completed,
  'finish failed': failed,
  'finish cancelled': cancelled,
};

const over = <const S extends State>(state: S) => ({ ...OVER, delete: { to: state } });
const OVER = {
  cancel: { refused: 'run_finished' },
  restored: 'ignored',
  'finish completed': 'ignored',
  'finish failed': 'ignored',
  'finish cancelled': 'ignored',
} as const;

const TABLE: Table<State, Sent> = {
  'running.active': {
    cancel: { to: 'running.cancelling' },
    delete: { refused: 'run_in_progress' },
    restored: { to: 'running.stale' },
    'finish completed': { to: 'completed' },
    'finish failed': { to: 'failed' },
    'finish cancelled': { to: 'cancelled' },
  },
  'running.cancelling': {
    cancel: { to: 'running.cancelling' },
    delete: { refused: 'run_in_progress' },
    restored: { to: 'running.stale' },
    'finish completed': { to: 'completed' },
    'finish failed': { to: 'failed' },
    'finish cancelled': { to: 'cancelled' },
  },
  'running.stale': {
    cancel: { to: 'cancelled' },
    delete: { refused: 'run_in_progress' },
    restored: { to: 'running.stale' },
    'finish completed': 'ignored',
    'finish failed': 'ignored',
    'finish cancelled': 'ignored',
  },
  completed: over('completed'),
  failed: over('failed'),
  cancelled: over('cancelled'),
};

testTable({
  what: 'a run',
  machine: runMachine,
  table: TABLE,
  effects: (state) => outcomes(EVENTS, () => runAt(state).run),
});

/** The state after a restart for each stored state. */
const AFTER_RESTART: Record<State, { to: State; notices: readonly RunNotice[] }> = {
  'running.active': { to: 'running.stale', notices: [] },
  'running.cancelling': { to: 'running.stale', notices: [] },
  'running.stale': { to: 'running.stale', notices: [] },
  completed: { to: 'completed', notices: [] },
  failed: { to: 'failed', notices: [] },
  cancelled: { to: 'cancelled', notices: [] },
};

for (const state of STATES) {
  test(`a run stored in ${state} comes back as its restart row says`, () => {
    const snapshot = stored(runMachine, runAt(state).run.getSnapshot());
    const notices: RunNotice[] = [];
    const after = createActor(runMachine, { snapshot, input: INPUT });
    after.on('run.status', (notice) => notices.push(notice));
    after.start();
    tell(after, restored);
    assert.deepEqual({ to: leafOf(after.getSnapshot().value), notices }, AFTER_RESTART[state]);
  });
}

test('a run announces its beginning and one end, and later events change nothing', () => {
  for (const end of [completed, failed, cancelled] as const) {
    for (const before of [[], [cancel], [cancel, cancel]]) {
      const { run, notices } = runAt('running.active');
      for (const event of [...before, end, completed, failed, cancelled, cancel, restored]) tell(run, event);
      assert.deepEqual(notices, [status('running', null), status(end.status, end.error)]);
    }
  }
});

test('only a cancel ends a run that a dead server has left running', () => {
  const { run, notices } = runAt('running.stale');
  for (const event of [completed, failed, cancelled, cancel, cancel, completed]) tell(run, event);
  assert.deepEqual(notices, [status('running', null), status('cancelled', null)]);
});

test('a run is resident while it is being carried out', () => {
  const resident = STATES.filter((state) => runAt(state).run.getSnapshot().hasTag('resident'));
  assert.deepEqual(resident, ['running.active', 'running.cancelling']);
});

const INPUT = {
  workspaceId: 'ws_1' as WorkspaceId,
  runId: 'run_1' as RunId,
  sessionId: 'nb_1' as SessionId,
  kind: 'notebook' as const,
};

function status(is: RunNotice['status'], error: RunNotice['error']): RunNotice {
  const { runId, sessionId, kind } = INPUT;
  return { type: 'run.status', runId, sessionId, kind, status: is, error };
}

function runAt(state: State) {
  const run = createActor(runMachine, { input: INPUT });
  const notices: RunNotice[] = [];
  run.on('run.status', (notice) => notices.push(notice));
  run.start();
  for (const event of WAY[state]) run.send(event);
  return { run, notices };
}
