/** An agent session on a clock of its own: the way into each of its states, its events, and its calls of others. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { createActor, fromCallback, SimulatedClock } from 'xstate';
import {
  type AgentSessionContext,
  type AgentSessionEvent,
  type AgentSessionNotice,
  type AgentSessionSnapshot,
  agentSessionMachine,
  type RunEnding,
} from '#machines/agent-session.ts';
import type { Failure } from '#src/base/errors/errors.ts';
import type { EnvironmentId, RunId, SessionId, WorkspaceId } from '#src/base/ids.ts';
import { leafOf, stored } from './chart-table.ts';

export type State =
  | 'closed'
  | 'open.ready'
  | 'open.busy.thinking'
  | 'open.busy.waiting'
  | 'open.busy.acting.running'
  | 'open.busy.acting.cancelling';

const INPUT = { workspaceId: 'ws_1' as WorkspaceId, sessionId: 'conv_1' as SessionId };
export const STOPPED: Failure = { code: 'server_stopped', message: 'The server was stopped.' };
export const LIMITED: Failure = { code: 'model_rate_limited', message: 'Too many requests.' };
export const open: AgentSessionEvent = {
  type: 'open',
  environmentId: 'env_1' as EnvironmentId,
  notebookSessionId: null,
  at: '2026-01-01T00:00:00.000Z',
};
export const prompt = (
  budget: { maxSteps?: number; maxTokens?: number; timeoutMs?: number } = {},
): AgentSessionEvent => ({
  type: 'prompt',
  runId: 'run_1' as RunId,
  maxSteps: 10,
  maxTokens: 0,
  ...budget,
});
export const cancel = { type: 'cancel', runId: 'run_1' as RunId } as const satisfies AgentSessionEvent;
export const close: AgentSessionEvent = { type: 'close' };
export const suspend: AgentSessionEvent = { type: 'suspend', failure: STOPPED };
export const restored: AgentSessionEvent = { type: 'restored' };
export const calls: AgentSessionEvent = { type: 'step.done', calls: 2, tokens: 10 };
export const answer: AgentSessionEvent = { type: 'step.done', calls: 0, tokens: 10 };
export const limited: AgentSessionEvent = { type: 'step.failed', failure: LIMITED, retryMs: 1000, tokens: 0 };
export const refused: AgentSessionEvent = { type: 'step.failed', failure: LIMITED, retryMs: null, tokens: 0 };
export const toolsDone: AgentSessionEvent = { type: 'tools.done' };

const WAY: Record<State, readonly AgentSessionEvent[]> = {
  closed: [],
  'open.ready': [open],
  'open.busy.thinking': [open, prompt()],
  'open.busy.waiting': [open, prompt(), limited],
  'open.busy.acting.running': [open, prompt(), calls],
  'open.busy.acting.cancelling': [open, prompt(), calls, cancel],
};
export const STATES = Object.keys(WAY) as State[];

export function status(is: 'ready' | 'busy' | 'closed', reason: string | null = null): AgentSessionNotice {
  return { type: 'session.status', status: is, reason };
}

export function sessionAt(t: TestContext, state: State) {
  const agent = start(t);
  agent.send(...WAY[state]);
  assert.equal(agent.state(), state);
  return agent;
}

/** A session at its beginning, or restored by a new server from the given snapshot. */
export function start(t: TestContext, from?: AgentSessionSnapshot) {
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
