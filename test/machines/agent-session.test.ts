import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { createActor, fromCallback, SimulatedClock } from 'xstate';
import {
  type AgentSessionContext,
  type AgentSessionEvent,
  type AgentSessionNotice,
  type AgentSessionSnapshot,
  agentSessionMachine,
  agentStatus,
  type RunEnding,
} from '#machines/agent-session.ts';
import type { Failure } from '#src/core/errors.ts';
import type { EnvironmentId, RunId, SessionId, WorkspaceId } from '#src/core/ids.ts';
import { leafOf, leavesOf, outcome, stored, type Table, tell } from './chart-table.ts';

type State =
  | 'closed'
  | 'open.ready'
  | 'open.busy.thinking'
  | 'open.busy.waiting'
  | 'open.busy.acting.running'
  | 'open.busy.acting.cancelling';

const INPUT = { workspaceId: 'ws_1' as WorkspaceId, sessionId: 'conv_1' as SessionId };
const STOPPED: Failure = { code: 'server_stopped', message: 'The server was stopped.' };
const LIMITED: Failure = { code: 'model_rate_limited', message: 'Too many requests.' };
const CLOSED: Failure = { code: 'session_closed', message: 'The session was closed while this was running.' };
const BROKEN: Failure = {
  code: 'agent_failed',
  message: 'The agent could not go on, through a fault of the server.',
};
const OUT_OF_TIME: Failure = {
  code: 'agent_time_limit',
  message: 'The prompt took more time than one may take.',
};
const OUT_OF_STEPS: Failure = {
  code: 'agent_step_limit',
  message: 'The prompt took more steps than one may take.',
};
const OUT_OF_TOKENS: Failure = {
  code: 'agent_token_limit',
  message: 'The prompt used more tokens than one may use.',
};

const open: AgentSessionEvent = {
  type: 'open',
  environmentId: 'env_1' as EnvironmentId,
  notebookSessionId: null,
  at: '2026-01-01T00:00:00.000Z',
};
const prompt = (budget: { maxSteps?: number; maxTokens?: number } = {}): AgentSessionEvent => ({
  type: 'prompt',
  runId: 'run_1' as RunId,
  maxSteps: 10,
  maxTokens: 0,
  ...budget,
});
const cancel: AgentSessionEvent = { type: 'cancel', runId: 'run_1' as RunId };
const close: AgentSessionEvent = { type: 'close' };
const suspend: AgentSessionEvent = { type: 'suspend', failure: STOPPED };
const restored: AgentSessionEvent = { type: 'restored' };
const calls: AgentSessionEvent = { type: 'step.done', calls: 2, tokens: 10 };
const answer: AgentSessionEvent = { type: 'step.done', calls: 0, tokens: 10 };
const limited: AgentSessionEvent = { type: 'step.failed', failure: LIMITED, retryMs: 1000 };
const refused: AgentSessionEvent = { type: 'step.failed', failure: LIMITED, retryMs: null };
const toolsDone: AgentSessionEvent = { type: 'tools.done' };

const WAY: Record<State, readonly AgentSessionEvent[]> = {
  closed: [],
  'open.ready': [open],
  'open.busy.thinking': [open, prompt()],
  'open.busy.waiting': [open, prompt(), limited],
  'open.busy.acting.running': [open, prompt(), calls],
  'open.busy.acting.cancelling': [open, prompt(), calls, cancel],
};
const STATES = Object.keys(WAY) as State[];

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
  delete: { type: 'delete' },
} as const satisfies Record<string, AgentSessionEvent>;

const PASSED_OVER = {
  'cancel of another': 'ignored',
  'step.done with calls': 'ignored',
  'step.done': 'ignored',
  'step.failed': 'ignored',
  'step.failed for good': 'ignored',
  'tools.done': 'ignored',
} as const;
const BUSY = {
  ...PASSED_OVER,
  open: { refused: 'session_exists' },
  prompt: { refused: 'session_busy' },
  delete: { refused: 'session_busy' },
  cancel: { to: 'open.ready' },
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
    'tools.done': { to: 'open.busy.thinking' },
  },
  'open.busy.acting.cancelling': { ...BUSY, cancel: 'ignored', 'tools.done': { to: 'open.ready' } },
};

for (const state of STATES) {
  test(`an agent session in ${state} takes, refuses or passes over every event as its row says`, (t) => {
    const seen = Object.entries(EVENTS).map(([name, event]) => [
      name,
      outcome(sessionAt(t, state).session, event),
    ]);
    assert.deepEqual(Object.fromEntries(seen), TABLE[state]);
  });

  test(`an agent session stored in ${state} comes back idle, and nothing of its prompt is ended or done again`, (t) => {
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

test('the table has a row for every state of the chart', () => {
  const leaves = leavesOf(agentSessionMachine).filter((leaf) => leaf !== 'closing');
  assert.deepEqual(leaves, [...STATES].sort());
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

test('a prompt that needs tools thinks and acts in turn, and its run is ended once', (t) => {
  const agent = start(t);
  agent.send(open, prompt(), calls, toolsDone, calls, toolsDone, answer, answer, toolsDone);
  assert.deepEqual(agent.ended, [{ status: 'completed', failure: null }]);
  assert.deepEqual(agent.work, [
    ...['think', 'think stopped', 'act', 'act stopped', 'think', 'think stopped', 'act', 'act stopped'],
    ...['think', 'think stopped'],
  ]);
  assert.deepEqual(agent.notices, [status('ready'), status('busy'), status('ready')]);
});

const ENDS: Record<string, { events: readonly AgentSessionEvent[]; ending: RunEnding }> = {
  'its last step still asks for tools': {
    events: [open, prompt({ maxSteps: 2 }), calls, toolsDone, calls],
    ending: { status: 'failed', failure: OUT_OF_STEPS },
  },
  'its tokens are used up and it asks for tools': {
    events: [open, prompt({ maxTokens: 20 }), calls, toolsDone, calls],
    ending: { status: 'failed', failure: OUT_OF_TOKENS },
  },
  'the model refuses for good': {
    events: [open, prompt(), refused],
    ending: { status: 'failed', failure: LIMITED },
  },
  'the session closes': {
    events: [open, prompt(), calls, close],
    ending: { status: 'cancelled', failure: CLOSED },
  },
  'the server stops': {
    events: [open, prompt(), suspend],
    ending: { status: 'failed', failure: STOPPED },
  },
  'it is cancelled while the model answers': {
    events: [open, prompt(), cancel],
    ending: { status: 'cancelled', failure: null },
  },
  'it is cancelled while tools run, and they stop': {
    events: [open, prompt(), calls, cancel, toolsDone],
    ending: { status: 'cancelled', failure: null },
  },
};

for (const [why, { events, ending }] of Object.entries(ENDS)) {
  test(`a run ends when ${why}`, (t) => {
    const agent = start(t);
    agent.send(...events);
    assert.deepEqual(agent.ended, [ending]);
  });
}

test('the last answer counts even when it is the last step, and when it takes the last token', (t) => {
  const agent = start(t);
  agent.send(open, prompt({ maxSteps: 1, maxTokens: 5 }), answer);
  assert.deepEqual(agent.ended, [{ status: 'completed', failure: null }]);
});

test('a failed step is tried again after its pause, four times at most, counted anew for each step', (t) => {
  const agent = start(t);
  agent.send(open, prompt());
  for (let attempt = 1; attempt <= 3; attempt++) {
    agent.send(limited);
    assert.equal(agent.state(), 'open.busy.waiting');
    agent.clock.increment(999);
    assert.equal(agent.state(), 'open.busy.waiting');
    agent.clock.increment(1);
    assert.equal(agent.state(), 'open.busy.thinking');
  }
  agent.send(calls, toolsDone, limited);
  assert.equal(agent.state(), 'open.busy.waiting');
  for (let attempt = 1; attempt <= 3; attempt++) {
    agent.clock.increment(1000);
    agent.send(limited);
  }
  assert.deepEqual(agent.ended, [{ status: 'failed', failure: LIMITED }]);
});

test('a wait for the model is announced with its cause', (t) => {
  const agent = start(t);
  agent.send(open, prompt(), limited);
  assert.deepEqual(agent.notices.at(-1), status('busy', 'model_rate_limited'));
});

test('a prompt ends at its deadline, in whatever it is', (t) => {
  for (const state of STATES.filter((name) => name.startsWith('open.busy'))) {
    const agent = sessionAt(t, state);
    for (let minute = 0; minute < 31; minute++) agent.clock.increment(60_000);
    assert.equal(agent.state(), 'open.ready', state);
    assert.equal(agent.ended.length, 1, state);
    const cancelled = state === 'open.busy.acting.cancelling';
    assert.deepEqual(
      agent.ended[0],
      cancelled ? { status: 'cancelled', failure: null } : { status: 'failed', failure: OUT_OF_TIME },
      state,
    );
  }
});

test('tools that do not stop are given up after the grace', (t) => {
  const agent = sessionAt(t, 'open.busy.acting.cancelling');
  assert.equal(agent.work.at(-1), 'act told to stop');
  agent.clock.increment(5_000);
  assert.deepEqual(agent.ended, [{ status: 'cancelled', failure: null }]);
  assert.equal(agent.work.at(-1), 'act stopped');
});

test('work that cannot begin fails the run', (t) => {
  for (const part of ['think', 'act'] as const) {
    const agent = start(t);
    agent.breaks(part);
    agent.send(open, prompt(), calls);
    assert.deepEqual(agent.ended, [{ status: 'failed', failure: BROKEN }]);
    assert.equal(agent.state(), 'open.ready');
  }
});

test('closing gives the environment back once, in every open state, and says so', (t) => {
  for (const state of STATES.filter((name) => name !== 'closed')) {
    const agent = sessionAt(t, state);
    agent.send(close);
    assert.deepEqual(agent.releases, ['env_1'], state);
    assert.deepEqual(
      agent.notices.slice(-2),
      [status('closed'), { type: 'session.closed', reason: 'closed' }],
      state,
    );
  }
});

function status(is: 'ready' | 'busy' | 'closed', reason: string | null = null): AgentSessionNotice {
  return { type: 'session.status', status: is, reason };
}

function sessionAt(t: TestContext, state: State) {
  const agent = start(t);
  agent.send(...WAY[state]);
  assert.equal(agent.state(), state);
  return agent;
}

/** A session at its beginning, or as a new server finds the one whose snapshot is given. */
function start(t: TestContext, from?: AgentSessionSnapshot) {
  const clock = new SimulatedClock();
  const ended: RunEnding[] = [];
  const work: string[] = [];
  const notices: AgentSessionNotice[] = [];
  const releases: (string | null)[] = [];
  let broken: string | null = null;
  const part = (name: 'think' | 'act') =>
    fromCallback<{ type: 'stop' }, AgentSessionContext>(({ receive }) => {
      if (broken === name) throw new Error('broken');
      work.push(name);
      receive(() => work.push(`${name} told to stop`));
      return () => {
        work.push(`${name} stopped`);
      };
    });
  const machine = agentSessionMachine.provide({
    actors: { think: part('think'), act: part('act') },
    actions: {
      endRun: ({ context }, ending) => {
        if (context.run !== null) ended.push(ending);
      },
      release: ({ context }) => {
        releases.push(context.environmentId);
      },
    },
  });
  const options = { clock, input: INPUT };
  const session =
    from === undefined
      ? createActor(machine, options)
      : createActor(machine, { ...options, snapshot: stored(machine, from) });
  session.on('*', (notice) => notices.push(notice));
  session.subscribe({ error: (error) => assert.fail(error as Error) });
  session.start();
  t.after(() => session.stop());
  return {
    session,
    clock,
    ended,
    work,
    notices,
    releases,
    breaks: (name: 'think' | 'act') => {
      broken = name;
    },
    send: (...events: AgentSessionEvent[]) => {
      for (const event of events) session.send(event);
    },
    state: () => leafOf(session.getSnapshot().value),
  };
}
