import assert from 'node:assert/strict';
import test from 'node:test';
import { createActor } from 'xstate';
import { type EnvironmentEvent, environmentMachine, environmentStatus } from '#machines/environment.ts';
import type { EnvironmentId, SessionId, WorkspaceId } from '#src/base/ids.ts';
import { leafOf, outcome, outcomes, stored, type Table, testTable } from './chart-table.ts';

/** `open.vacant` takes `close` only while no agent is attached, so it has two rows. */
type State = 'open.vacant' | 'open.occupied' | 'closed';
type Row = State | 'open.vacant with an agent';

const NOTEBOOK = 'nb_1' as SessionId;
const AGENT = 'conv_1' as SessionId;
const attachNotebook: EnvironmentEvent = { type: 'attachNotebook', sessionId: NOTEBOOK };
const detachNotebook: EnvironmentEvent = { type: 'detachNotebook', sessionId: NOTEBOOK };
const attachAgent: EnvironmentEvent = { type: 'attachAgent', sessionId: AGENT };
const detachAgent: EnvironmentEvent = { type: 'detachAgent', sessionId: AGENT };
const close: EnvironmentEvent = { type: 'close' };

const WAY: Record<Row, readonly EnvironmentEvent[]> = {
  'open.vacant': [],
  'open.vacant with an agent': [attachAgent],
  'open.occupied': [attachNotebook],
  closed: [close],
};

const EVENTS: Record<EnvironmentEvent['type'], EnvironmentEvent> = {
  attachNotebook,
  detachNotebook,
  attachAgent,
  detachAgent,
  close,
};

const TABLE: Table<Row, EnvironmentEvent['type']> = {
  'open.vacant': {
    attachNotebook: { to: 'open.occupied' },
    detachNotebook: 'ignored',
    attachAgent: { to: 'open.vacant' },
    detachAgent: { to: 'open.vacant' },
    close: { to: 'closed' },
  },
  'open.vacant with an agent': {
    attachNotebook: { to: 'open.occupied' },
    detachNotebook: 'ignored',
    attachAgent: { to: 'open.vacant' },
    detachAgent: { to: 'open.vacant' },
    close: { refused: 'environment_in_use' },
  },
  'open.occupied': {
    attachNotebook: { refused: 'environment_occupied' },
    detachNotebook: { to: 'open.vacant' },
    attachAgent: { to: 'open.occupied' },
    detachAgent: { to: 'open.occupied' },
    close: { refused: 'environment_in_use' },
  },
  closed: {
    attachNotebook: { refused: 'environment_closed' },
    detachNotebook: 'ignored',
    attachAgent: { refused: 'environment_closed' },
    detachAgent: 'ignored',
    close: { refused: 'environment_closed' },
  },
};

const ROWS = Object.keys(WAY) as Row[];

for (const row of ROWS) {
  test(`an environment stored in ${row} comes back unchanged`, () => {
    const before = environmentAt(row).getSnapshot();
    const after = createActor(environmentMachine, {
      snapshot: stored(environmentMachine, before),
      input: INPUT,
    });
    after.start();
    const { value, context } = after.getSnapshot();
    assert.deepEqual({ value, context }, { value: before.value, context: before.context });
    assert.equal(after.getSnapshot().can({ type: 'restored' } as never), false);
  });
}

testTable({
  what: 'an environment',
  machine: environmentMachine,
  table: TABLE,
  stateOf: (row) => leafOf(environmentAt(row).getSnapshot().value),
  effects: (row) => outcomes(EVENTS, () => environmentAt(row)),
});

test('a notebook is attached exactly while the environment is occupied', () => {
  const environment = environmentAt('open.occupied');
  assert.equal(environment.getSnapshot().context.notebookSessionId, NOTEBOOK);
  environment.send(detachNotebook);
  assert.deepEqual(environment.getSnapshot().context, {
    ...INPUT,
    notebookSessionId: null,
    agentSessionIds: [],
  });
});

test('a notebook that is not attached cannot be detached', () => {
  const other: EnvironmentEvent = { type: 'detachNotebook', sessionId: 'nb_2' as SessionId };
  assert.equal(outcome(environmentAt('open.occupied'), other), 'ignored');
});

test('attaching an agent again has no effect, and an environment can close after its agent is detached', () => {
  const environment = environmentAt('open.vacant');
  for (const id of ['conv_1', 'conv_2', 'conv_1'])
    environment.send({ type: 'attachAgent', sessionId: id as SessionId });
  assert.deepEqual(environment.getSnapshot().context.agentSessionIds, ['conv_2', 'conv_1']);
  environment.send({ type: 'detachAgent', sessionId: 'conv_2' as SessionId });
  assert.deepEqual(outcome(environment, close), { refused: 'environment_in_use' });
  environment.send(detachAgent);
  assert.deepEqual(outcome(environment, close), { to: 'closed' });
});

test('the status of an environment is open until the environment is closed', () => {
  const shown = ROWS.map((row) => [row, environmentStatus(environmentAt(row).getSnapshot())]);
  assert.deepEqual(Object.fromEntries(shown), {
    'open.vacant': 'open',
    'open.vacant with an agent': 'open',
    'open.occupied': 'open',
    closed: 'closed',
  });
});

const INPUT = { workspaceId: 'ws_1' as WorkspaceId, environmentId: 'env_1' as EnvironmentId };

function environmentAt(row: Row) {
  const environment = createActor(environmentMachine, { input: INPUT }).start();
  for (const event of WAY[row]) environment.send(event);
  return environment;
}
