/**
 * The actors of agent sessions: their chart with its ports provided. The ports take the steps of a prompt, end its run,
 * and release a session's resources when it closes.
 */

import { type AgentSessionContext, agentSessionMachine, type PromptBudget } from '#machines/agent-session.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { RunId } from '#src/base/ids.ts';
import type { ActorKind } from '#src/runtime/actors/actor-kind.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { type Occupation, refusalFacts } from '#src/runtime/sessions/refusal-facts.ts';
import { SessionPlane } from '#src/runtime/sessions/session-plane.ts';
import type { LiveConversation } from './live-conversation.ts';
import type { LiveConversations } from './live-conversations.ts';
import type { PromptTurn } from './prompt-turn.ts';
import { actDriver, thinkDriver } from './turn-driver.ts';

export type AgentSessionActors = ActorKind<typeof agentSessionMachine>;

export class AgentActors {
  readonly actors: AgentSessionActors;
  readonly plane: SessionPlane<LiveConversation>;
  readonly #context: RunPlaneContext;
  readonly #turns = new Map<string, PromptTurn>();

  constructor(context: RunPlaneContext, conversations: LiveConversations) {
    this.#context = context;
    const { runtime, runs } = context;
    this.actors = runtime.define({
      kind: 'agent-session',
      machineVersion: 1,
      machine: this.#provideMachine(),
      restored: { type: 'restored' },
      // A conversation that is bound to a notebook has the notebook's id, so both have one home.
      homeOf: ({ sessionId }) => sessionId,
      // A user who may not read the conversation learns, when deleting its notebook, only that the
      // conversation is busy, and nothing about the prompt.
      refused: (code, context, event) =>
        refusalFacts(code, event === 'prompt' ? occupationOf(context) : undefined, context),
      shown: ({ environmentId, notebookSessionId, openedAt, run }) => ({
        links: [
          ...(environmentId === null ? [] : [{ kind: 'environment', id: environmentId }]),
          ...(notebookSessionId === null ? [] : [{ kind: 'notebook-session', id: notebookSessionId }]),
          ...(run === null ? [] : [{ kind: 'run', id: run.id }]),
        ],
        context: {
          openedAt,
          steps: run?.steps ?? null,
          tokens: run?.tokens ?? null,
          failures: run?.failures ?? null,
          maxSteps: run?.maxSteps ?? null,
          maxTokens: run?.maxTokens ?? null,
        },
      }),
    });
    this.plane = new SessionPlane(runs, { actors: this.actors, live: conversations, runKind: 'agent' });
    this.actors.on((session, notice, committed) => {
      if (notice.type !== 'session.status' || notice.status === 'busy') return;
      // The conversation may have no followers left, and its prompt has ended.
      Promise.resolve(committed).then(
        () => conversations.release(session),
        () => {}, // the store reports a failed commit
      );
    });
  }

  /** Throws the refusal of a session that cannot take a prompt now. */
  check(session: ActorId, budget: PromptBudget): void {
    this.actors.check(session, { type: 'prompt', runId: '' as RunId, ...budget });
  }

  /**
   * Gives the session a prompt, which may take `timeoutS` seconds. If the session refuses, this throws; otherwise the turn is ended
   * exactly once.
   */
  start(
    session: ActorId,
    turn: PromptTurn,
    budget: PromptBudget,
    { timeoutS, by }: { readonly timeoutS: number | undefined; readonly by: string },
  ): void {
    this.#turns.set(turn.runId, turn);
    const timeoutMs = timeoutS === undefined ? undefined : timeoutS * 1000;
    try {
      this.actors.ask(session, { type: 'prompt', runId: turn.runId, timeoutMs, by, ...budget });
    } catch (error) {
      this.#turns.delete(turn.runId);
      throw error;
    }
  }

  #provideMachine() {
    const { store, environments, config, log } = this.#context;
    const turnOf = ({ run }: AgentSessionContext): PromptTurn => {
      const turn = run === null ? undefined : this.#turns.get(run.id);
      invariant(turn !== undefined, 'A prompt in progress has a turn.', run?.id);
      return turn;
    };
    const onFault = (error: unknown) => log.error({ err: error }, 'a prompt failed');
    return agentSessionMachine.provide({
      actors: { think: thinkDriver(turnOf, onFault), act: actDriver(turnOf, onFault) },
      delays: { runDeadline: config.agentTimeoutS * 1000 },
      actions: {
        endRun: ({ context: { run } }, ending) => {
          if (run === null) return;
          this.#turns.get(run.id)?.end(ending);
          this.#turns.delete(run.id);
        },
        release: ({ context: { workspaceId, sessionId, environmentId } }) => {
          if (environmentId === null) return;
          const detach = { type: 'detachAgent', sessionId } as const;
          store.decide(() => environments.actors.tell({ workspaceId, id: environmentId }, detach));
        },
      },
    });
  }
}

/** Returns the prompt that a conversation is answering. */
function occupationOf({ run }: AgentSessionContext): Occupation | undefined {
  return run === null ? undefined : { kind: 'run', runId: run.id, by: run.by };
}
