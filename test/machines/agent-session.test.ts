import assert from 'node:assert/strict';
import test from 'node:test';
import type { AgentSessionEvent, RunEnding } from '#machines/agent-session.ts';
import type { Failure } from '#src/base/errors/errors.ts';
import {
  answer,
  calls,
  cancel,
  close,
  LIMITED,
  limited,
  open,
  prompt,
  refused,
  STATES,
  STOPPED,
  sessionAt,
  start,
  status,
  suspend,
  toolsDone,
} from './agent-session-fixture.ts';

const CLOSED: Failure = {
  code: 'session_closed',
  message: 'The session was closed while this was running.',
};
const BROKEN: Failure = {
  code: 'agent_failed',
  message: 'The agent could not continue because of a fault of the server.',
};
const OUT_OF_TIME: Failure = {
  code: 'agent_time_limit',
  message: 'The prompt ran longer than the time limit of prompts.',
};
const OUT_OF_STEPS: Failure = {
  code: 'agent_step_limit',
  message: 'The prompt took more steps than the limit of prompts allows.',
};
const OUT_OF_TOKENS: Failure = {
  code: 'agent_token_limit',
  message: 'The prompt used more tokens than the limit of prompts allows.',
};

test('a prompt with tools alternates between thinking and acting, and its run is ended once', (t) => {
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
  'its tokens are used up by attempts that failed': {
    events: [
      open,
      prompt({ maxTokens: 20 }),
      calls,
      toolsDone,
      { ...limited, tokens: 10 } as AgentSessionEvent,
    ],
    ending: { status: 'failed', failure: OUT_OF_TOKENS },
  },
  'the last attempt fails': {
    events: [open, prompt({ maxTokens: 20 }), { ...refused, tokens: 30 } as AgentSessionEvent],
    ending: { status: 'failed', failure: LIMITED },
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

test('the last answer counts even if it is the last step or uses the last token', (t) => {
  const agent = start(t);
  agent.send(open, prompt({ maxSteps: 1, maxTokens: 5 }), answer);
  assert.deepEqual(agent.ended, [{ status: 'completed', failure: null }]);
});

test('a failed step is tried again after a pause, at most four times per step', (t) => {
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

test('a pause before another request to the model is announced with its cause', (t) => {
  const agent = start(t);
  agent.send(open, prompt(), limited);
  assert.deepEqual(agent.notices.at(-1), status('busy', 'model_rate_limited'));
});

test('a prompt ends at the limit of the server in every state', (t) => {
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

const EXPIRED = {
  status: 'failed',
  failure: {
    code: 'timed_out',
    message: 'This took longer than the `timeoutS` of its request, and was interrupted.',
  },
};

test('a prompt that reaches the deadline of its request during an answer or a pause fails at once', (t) => {
  for (const events of [[], [limited]]) {
    const agent = start(t);
    agent.send(open, prompt({ timeoutMs: 900 }), ...events);
    agent.clock.increment(899);
    assert.deepEqual([agent.state().startsWith('open.busy'), agent.ended], [true, []]);
    agent.clock.increment(1);
    assert.deepEqual([agent.state(), agent.ended], ['open.ready', [EXPIRED]]);
  }
});

test('a prompt that reaches the deadline of its request while tools run first stops them, and a later cancel changes nothing', (t) => {
  const agent = start(t);
  agent.send(open, prompt({ timeoutMs: 900 }), calls);
  agent.clock.increment(900);
  assert.equal(agent.work.at(-1), 'act told to stop');
  agent.send(cancel, toolsDone);
  assert.deepEqual([agent.state(), agent.ended], ['open.ready', [EXPIRED]]);
});

test('the deadline of a prompt covers all its steps, and a prompt without a deadline has only the limit of the server', (t) => {
  const agent = start(t);
  agent.send(open, prompt({ timeoutMs: 900 }), calls);
  agent.clock.increment(500);
  agent.send(toolsDone);
  agent.clock.increment(400);
  agent.send(prompt());
  agent.clock.increment(1_799_999);
  assert.deepEqual([agent.state(), agent.ended], ['open.busy.thinking', [EXPIRED]]);
});

test('tools that do not stop are abandoned after the grace period', (t) => {
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

test('closing releases the environment once in every open state, and the release is announced', (t) => {
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
