/** The effect of each event in each state of an agent session. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { type AgentSessionEvent, agentSessionMachine, agentStatus } from '#machines/agent-session.ts';
import type { RunId } from '#src/base/ids.ts';
import {
  answer,
  calls,
  cancel,
  close,
  limited,
  open,
  prompt,
  refused,
  restored,
  STATES,
  type State,
  sessionAt,
  start,
  suspend,
  toolsDone,
} from './agent-session-fixture.ts';
import { leafOf, outcomes, type Table, tell, testTable } from './chart-table.ts';

const EVENTS = {
  open,
  prompt: prompt(),
  cancel,
  'cancel of another': { ...cancel, runId: 'run_2' as RunId },
  close,
  suspend,
  restored,
  'step.done with calls': calls,
  'step.done': answer,
  'step.failed': limited,
  'step.failed for good': refused,
  'tools.done': toolsDone,
  expire: { type: 'expire' },
  delete: { type: 'delete' },
} as const satisfies Record<string, AgentSessionEvent>;

const PASSED_OVER = {
  'cancel of another': 'ignored',
  'step.done with calls': 'ignored',
  'step.done': 'ignored',
  'step.failed': 'ignored',
  'step.failed for good': 'ignored',
  'tools.done': 'ignored',
  expire: 'ignored',
} as const;
const BUSY = {
  ...PASSED_OVER,
  open: { refused: 'session_exists' },
  prompt: { refused: 'session_busy' },
  delete: { refused: 'session_busy' },
  cancel: { to: 'open.ready' },
  expire: { to: 'open.ready' },
  close: { to: 'closed' },
  suspend: { to: 'open.ready' },
  restored: { to: 'open.ready' },
} as const;

const TABLE: Table<State, keyof typeof EVENTS> = {
  closed: {
    ...PASSED_OVER,
    open: { to: 'open.ready' },
    prompt: { refused: 'session_closed' },
    delete: { to: 'closed' },
    cancel: 'ignored',
    close: { refused: 'session_closed' },
    suspend: 'ignored',
    restored: 'ignored',
  },
  'open.ready': {
    ...PASSED_OVER,
    open: { refused: 'session_exists' },
    prompt: { to: 'open.busy.thinking' },
    delete: { to: 'open.ready' },
    cancel: 'ignored',
    close: { to: 'closed' },
    suspend: 'ignored',
    restored: 'ignored',
  },
  'open.busy.thinking': {
    ...BUSY,
    'step.done with calls': { to: 'open.busy.acting.running' },
    'step.done': { to: 'open.ready' },
    'step.failed': { to: 'open.busy.waiting' },
    'step.failed for good': { to: 'open.ready' },
  },
  'open.busy.waiting': BUSY,
  'open.busy.acting.running': {
    ...BUSY,
    cancel: { to: 'open.busy.acting.cancelling' },
    expire: { to: 'open.busy.acting.cancelling' },
    'tools.done': { to: 'open.busy.thinking' },
  },
  'open.busy.acting.cancelling': {
    ...BUSY,
    cancel: 'ignored',
    expire: 'ignored',
    'tools.done': { to: 'open.ready' },
  },
};

for (const state of STATES) {
  test(`an agent session stored in ${state} comes back idle, and its prompt is neither ended nor carried out again`, (t) => {
    const before = sessionAt(t, state);
    const after = start(t, before.session.getSnapshot());
    tell(after.session, restored);
    const { value, context } = after.session.getSnapshot();
    assert.deepEqual(
      { to: leafOf(value), run: context.run, ended: after.ended },
      { to: state === 'closed' ? 'closed' : 'open.ready', run: null, ended: [] },
    );
  });
}

testTable({
  what: 'an agent session',
  machine: agentSessionMachine,
  table: TABLE,
  transient: ['closing'],
  effects: (state, t) => outcomes(EVENTS, () => sessionAt(t, state).session),
});

test('an agent session is resident and has a run exactly while it is busy', (t) => {
  const facts = STATES.map((state) => {
    const snapshot = sessionAt(t, state).session.getSnapshot();
    return [state, agentStatus(snapshot), snapshot.hasTag('resident'), snapshot.context.run !== null];
  });
  assert.deepEqual(facts, [
    ['closed', 'closed', false, false],
    ['open.ready', 'ready', false, false],
    ['open.busy.thinking', 'busy', true, true],
    ['open.busy.waiting', 'busy', true, true],
    ['open.busy.acting.running', 'busy', true, true],
    ['open.busy.acting.cancelling', 'busy', true, true],
  ]);
});
