/** The parts of the agent session's chart: its context, events, guards and actions. The chart combines them. */

import { assign, emit, fromCallback, sendTo, setup } from 'xstate';
import type { Failure } from '#src/base/errors/errors.ts';
import type { FailureCode } from '#src/base/errors/failures.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { Refusals } from '#src/base/errors/refusals.ts';
import type { EnvironmentId, RunId, SessionId, WorkspaceId } from '#src/base/ids.ts';
import type { AgentStatus } from '#src/contract/wire/agent.ts';
import type { TerminalStatus } from '#src/contract/wire/run.ts';
import {
  type Closer,
  closedNotice,
  NO_DEADLINE_MS,
  OUT_OF_TIME,
  type SessionNotice,
  unprovided,
} from './any-session.ts';

/** The limits of one prompt; `maxTokens` 0 means no limit. */
export interface PromptBudget {
  readonly maxSteps: number;
  readonly maxTokens: number;
}

/** The prompt that is being answered. In one step the model gives one answer. */
export interface PromptRun extends PromptBudget {
  readonly id: RunId;
  readonly steps: number;
  readonly tokens: number;
  /** Failures of the present step, in a row. */
  readonly failures: number;
  /** The pause before another attempt. */
  readonly pauseMs: number;
  /** The deadline that the request sets, in milliseconds after its acceptance; null when it sets none. */
  readonly timeoutMs: number | null;
  /** Whether that deadline has stopped the prompt's tools. */
  readonly isOutOfTime: boolean;
  /** The user who sent the prompt. */
  readonly by?: string;
}

export interface AgentSessionInput {
  readonly workspaceId: WorkspaceId;
  readonly sessionId: SessionId;
}

export interface AgentSessionContext extends AgentSessionInput, Closer {
  readonly environmentId: EnvironmentId | null;
  /** The only notebook session that the agent may drive; null when it is bound to none. */
  readonly notebookSessionId: SessionId | null;
  readonly openedAt: string | null;
  readonly run: PromptRun | null;
}

interface Opening {
  readonly environmentId: EnvironmentId;
  readonly notebookSessionId: SessionId | null;
  readonly at: string;
}

interface Prompt extends PromptBudget {
  readonly runId: RunId;
  readonly timeoutMs?: number | null | undefined;
  readonly by?: string | undefined;
}

interface StepFailure {
  readonly failure: Failure;
  /** The pause before another attempt; null when another attempt would fail as well. */
  readonly retryMs: number | null;
  /** The tokens that the failed attempt has cost. */
  readonly tokens: number;
}

export type AgentSessionEvent =
  | ({ type: 'open' } & Opening)
  | ({ type: 'prompt'; runId: RunId; timeoutMs?: number | undefined; by?: string | undefined } & PromptBudget)
  | { type: 'cancel'; runId: RunId }
  /** The deadline of the prompt's request has passed. */
  | { type: 'expire' }
  /** `by` is the user who closes the session; absent when the server closes it. */
  | { type: 'close'; by?: string | undefined }
  | { type: 'suspend'; failure: Failure }
  | { type: 'restored' }
  | { type: 'step.done'; calls: number; tokens: number }
  | ({ type: 'step.failed' } & StepFailure)
  | { type: 'tools.done' }
  /** Asks whether the conversation may be deleted; changes nothing. */
  | { type: 'delete' };

export type AgentSessionNotice = SessionNotice<AgentStatus>;

export interface RunEnding {
  readonly status: TerminalStatus;
  readonly failure: Failure | null;
}

const MAX_ATTEMPTS = 4;
export const CANCELLED: RunEnding = { status: 'cancelled', failure: null };
export const COMPLETED: RunEnding = { status: 'completed', failure: null };
const failed = (code: FailureCode, message: string): RunEnding => ({
  status: 'failed',
  failure: { code, message },
});
export const AGENT_BROKEN = failed(
  'agent_failed',
  'The agent could not continue because of a fault of the server.',
);
export const EXPIRED: RunEnding = { status: 'failed', failure: OUT_OF_TIME };
export const OVER_TIME_LIMIT = failed(
  'agent_time_limit',
  'The prompt ran longer than the time limit of prompts.',
);
export const OUT_OF_STEPS = failed(
  'agent_step_limit',
  'The prompt took more steps than the limit of prompts allows.',
);
export const OUT_OF_TOKENS = failed(
  'agent_token_limit',
  'The prompt used more tokens than the limit of prompts allows.',
);

function isOutOfTokens(run: PromptRun | null, tokens: number): boolean {
  return run !== null && run.maxTokens > 0 && run.tokens + tokens >= run.maxTokens;
}

function mayRetry(run: PromptRun | null, { retryMs }: StepFailure): boolean {
  return retryMs !== null && run !== null && run.failures + 1 < MAX_ATTEMPTS;
}

export const agentSessionSetup = setup({
  types: {} as {
    input: AgentSessionInput;
    context: AgentSessionContext;
    events: AgentSessionEvent;
    emitted: AgentSessionNotice;
    meta: Refusals<AgentSessionEvent['type']>;
    tags: 'resident';
  },
  actors: {
    /** Asks the model for one step; reports `step.done` or `step.failed`. */
    think: fromCallback<{ type: 'stop' }, AgentSessionContext>(unprovided('think')),
    /** Carries out the calls of the last step; reports `tools.done`, also after a `stop`. */
    act: fromCallback<{ type: 'stop' }, AgentSessionContext>(unprovided('act')),
  },
  delays: {
    runDeadline: 1_800_000,
    promptDeadline: ({ context: { run, sessionId } }) => {
      invariant(run !== null, 'A busy conversation has a run.', sessionId);
      return run.timeoutMs ?? NO_DEADLINE_MS;
    },
    cancelGrace: 5_000,
    retryPause: ({ context }) => context.run?.pauseMs ?? 0,
  },
  guards: {
    isCurrent: ({ context }, runId: RunId) => context.run?.id === runId,
    hasDeadline: ({ context: { run } }) => run?.timeoutMs != null,
    isAnswer: (_, calls: number) => calls === 0,
    isOutOfSteps: ({ context: { run } }) => run !== null && run.steps + 1 >= run.maxSteps,
    isOutOfTokens: ({ context: { run } }, tokens: number) => isOutOfTokens(run, tokens),
    mayRetry: ({ context: { run } }, failure: StepFailure) =>
      mayRetry(run, failure) && !isOutOfTokens(run, failure.tokens),
    lacksTokensToRetry: ({ context: { run } }, failure: StepFailure) =>
      mayRetry(run, failure) && isOutOfTokens(run, failure.tokens),
  },
  actions: {
    permit: () => undefined,
    begin: assign((_, { environmentId, notebookSessionId, at }: Opening) => ({
      environmentId,
      notebookSessionId,
      openedAt: at,
      closedBy: null,
      run: null,
    })),
    noteCloser: assign((_, by: string | undefined) => ({ closedBy: by ?? null })),
    takeRun: assign(({ context }, { runId, maxSteps, maxTokens, timeoutMs = null, by }: Prompt) => {
      invariant(context.run === null, 'A conversation that is not busy has no run.', context.sessionId);
      return {
        run: {
          id: runId,
          maxSteps,
          maxTokens,
          steps: 0,
          tokens: 0,
          failures: 0,
          pauseMs: 0,
          timeoutMs,
          isOutOfTime: false,
          ...(by === undefined ? {} : { by }),
        },
      };
    }),
    noteOutOfTime: assign(({ context: { run } }) => ({ run: run && { ...run, isOutOfTime: true } })),
    noteStep: assign(({ context: { run } }, tokens: number) => ({
      run: run && { ...run, steps: run.steps + 1, tokens: run.tokens + tokens, failures: 0 },
    })),
    noteFailure: assign(({ context: { run } }, { retryMs, tokens }: StepFailure) => ({
      run: run && {
        ...run,
        failures: run.failures + 1,
        pauseMs: retryMs ?? 0,
        tokens: run.tokens + tokens,
      },
    })),
    dropRun: assign({ run: null }),
    stopTools: sendTo('act', { type: 'stop' }),
    announce: emit((_, params: { status: AgentStatus; reason?: string }) => ({
      type: 'session.status' as const,
      status: params.status,
      reason: params.reason ?? null,
    })),
    announceClosed: emit(({ context }) => closedNotice(context)),
    /** Completes the history and ends the run's record; does nothing when there is no run. */
    endRun: unprovided('endRun') as (_: { context: AgentSessionContext }, ending: RunEnding) => void,
    /** Detaches the session from its environment. */
    release: unprovided('release') as (_: { context: AgentSessionContext }) => void,
  },
});
