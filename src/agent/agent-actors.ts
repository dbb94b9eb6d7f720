/**
 * The actors of agent sessions: their chart with the ports provided (what a step is, what ending a run means, what closing
 * gives back), and their notices turned into events of their streams.
 */
import {
  type AgentSessionContext,
  type AgentSessionNotice,
  agentSessionMachine,
  type PromptBudget,
} from '#machines/agent-session.ts';
import type { ActorKind } from '#src/actors/actor-kind.ts';
import type { ActorId } from '#src/actors/address.ts';
import type { ActorRuntime } from '#src/actors/runtime.ts';
import type { RunId, SessionId, WorkspaceId } from '#src/core/ids.ts';
import type { Log } from '#src/core/log.ts';
import type { RunBook } from '#src/runs/run-book.ts';
import type { EnvironmentActors } from '#src/sessions/environments.ts';
import type { LiveConversations } from './live-conversations.ts';
import type { Turn } from './turn.ts';
import { actDriver, thinkDriver } from './turn-driver.ts';

export type AgentSessionActors = ActorKind<typeof agentSessionMachine>;

export interface AgentActorsOptions {
  readonly runtime: ActorRuntime;
  readonly environments: EnvironmentActors;
  readonly runs: RunBook;
  readonly conversations: LiveConversations;
  /** How long one prompt may take. */
  readonly runTimeoutMs: number;
  readonly log: Log;
}

export class AgentActors {
  readonly actors: AgentSessionActors;
  readonly #options: AgentActorsOptions;
  readonly #turns = new Map<string, Turn>();

  constructor(options: AgentActorsOptions) {
    this.#options = options;
    this.actors = options.runtime.define({
      kind: 'agent-session',
      machineVersion: 1,
      machine: this.#provideMachine(),
      restored: { type: 'restored' },
    });
    this.actors.on((id, notice, committed) => this.#publish(id, notice, committed));
    options.runs.actors.on(({ workspaceId }, notice, committed) => {
      const { kind, sessionId, runId, status, error } = notice;
      if (kind !== 'agent') return;
      const data = { runId, status, ...(error === null ? {} : { error }) };
      const event = { type: 'run-status', sessionId, runId, data } as const;
      options.conversations.peek(workspaceId, sessionId)?.tellRunStatus(event, committed);
    });
  }

  /** Throws what the session's state has against a prompt now. */
  check(session: ActorId, budget: PromptBudget): void {
    this.actors.check(session, { type: 'prompt', runId: '' as RunId, ...budget });
  }

  /** Has the session answer a prompt; the turn is ended exactly once, unless this throws the refusal. */
  start(session: ActorId, turn: Turn, budget: PromptBudget): void {
    this.#turns.set(turn.runId, turn);
    try {
      this.actors.ask(session, { type: 'prompt', runId: turn.runId, ...budget });
    } catch (error) {
      this.#turns.delete(turn.runId);
      throw error;
    }
  }

  #provideMachine() {
    const { environments, runTimeoutMs, log } = this.#options;
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
          environments.tell({ workspaceId, id: environmentId }, { type: 'detachAgent', sessionId });
        },
      },
    });
  }

  #publish({ workspaceId, id }: ActorId, notice: AgentSessionNotice, committed: Promise<void>): void {
    const { conversations } = this.#options;
    const live = conversations.peek(workspaceId, id);
    if (notice.type === 'session.status') {
      const { status, reason } = notice;
      const data = { status, ...(reason === null ? {} : { reason }) };
      live?.stream.publish({ type: 'session.status', sessionId: id, data }, committed);
      if (status !== 'busy') this.#letGo(workspaceId, id as SessionId, committed);
    } else {
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
