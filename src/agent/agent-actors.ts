/**
 * The actors of agent sessions: their chart with the ports provided (what a step is, what ending a run means, what closing
 * gives back), and their notices turned into events of their streams.
 */
import {
  type AgentSessionContext,
  type AgentStatus,
  agentSessionMachine,
  type PromptBudget,
} from '#machines/agent-session.ts';
import type { RunNotice } from '#machines/run.ts';
import type { Address } from '#src/actors/address.ts';
import type { ActorEvent } from '#src/actors/notice-board.ts';
import type { ActorRuntime } from '#src/actors/runtime.ts';
import type { SessionId, WorkspaceId } from '#src/core/ids.ts';
import type { Log } from '#src/core/log.ts';
import type { LiveConversations } from './live-conversations.ts';
import type { Turn } from './turn.ts';
import { actDriver, thinkDriver } from './turn-driver.ts';

export const AGENT_KIND = 'agent-session';

export interface AgentActorsOptions {
  readonly actors: ActorRuntime;
  readonly conversations: LiveConversations;
  /** How long one prompt may take. */
  readonly runTimeoutMs: number;
  readonly log: Log;
}

export class AgentActors {
  readonly #options: AgentActorsOptions;
  readonly #turns = new Map<string, Turn>();

  constructor(options: AgentActorsOptions) {
    this.#options = options;
    const { actors } = options;
    actors.define({ kind: AGENT_KIND, machineVersion: 1, machine: this.#provideMachine() });
    actors.onNotice(AGENT_KIND, (address, notice, committed) => this.#publish(address, notice, committed));
    actors.onNotice('run', ({ workspaceId }, notice, committed) => {
      const { kind, sessionId, runId, status, error } = notice as unknown as RunNotice;
      if (kind !== 'agent') return;
      const data = { runId, status, ...(error === null ? {} : { error }) };
      const event = { type: 'run-status', sessionId, runId, data } as const;
      options.conversations.peek(workspaceId, sessionId)?.tellRunStatus(event, committed);
    });
  }

  /** Has the session answer a prompt; the turn is ended exactly once, unless this throws the refusal. */
  start(address: Address, turn: Turn, budget: PromptBudget): void {
    this.#turns.set(turn.runId, turn);
    try {
      this.#options.actors.ask(address, { type: 'prompt', runId: turn.runId, ...budget });
    } catch (error) {
      this.#turns.delete(turn.runId);
      throw error;
    }
  }

  #provideMachine() {
    const { actors, runTimeoutMs, log } = this.#options;
    const turnOf = ({ run }: AgentSessionContext): Turn => {
      const turn = run === null ? undefined : this.#turns.get(run.id);
      if (turn === undefined) throw new Error(`The run ${run?.id} has no turn.`);
      return turn;
    };
    const ports = { turnOf, onFault: (error: unknown) => log.error({ err: error }, 'a prompt failed') };
    return agentSessionMachine.provide({
      actors: { think: thinkDriver(ports), act: actDriver(ports) },
      delays: { runDeadline: runTimeoutMs },
      actions: {
        endRun: ({ context: { run } }, ending) => {
          if (run === null) return;
          this.#turns.get(run.id)?.end(ending);
          this.#turns.delete(run.id);
        },
        release: ({ context: { workspaceId, sessionId, environmentId } }) => {
          if (environmentId === null) return;
          const environment = { workspaceId, kind: 'environment', id: environmentId };
          actors.tell(environment, { type: 'detachAgent', sessionId });
        },
      },
    });
  }

  #publish({ workspaceId, id }: Address, notice: ActorEvent, committed: Promise<void>): void {
    const { conversations } = this.#options;
    const live = conversations.peek(workspaceId, id);
    if (notice.type === 'session.status') {
      const { status, reason } = notice as unknown as { status: AgentStatus; reason: string | null };
      const data = { status, ...(reason === null ? {} : { reason }) };
      live?.stream.publish({ type: 'session.status', sessionId: id, data }, committed);
      if (status !== 'busy') this.#letGo(workspaceId, id as SessionId, committed);
    } else if (notice.type === 'session.closed') {
      conversations.retire(workspaceId, id as SessionId);
      live?.stream.end({ type: 'session.closed', sessionId: id, data: { reason: 'closed' } }, committed);
    }
  }

  /** Whoever is not followed leaves memory once its prompt is over. */
  #letGo(workspaceId: WorkspaceId, sessionId: SessionId, committed: Promise<void>): void {
    const settle = () => this.#options.conversations.settle(workspaceId, sessionId);
    committed.then(settle, () => {}); // a failed commit is reported once, by the store
  }
}
