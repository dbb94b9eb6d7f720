/**
 * The `think` and `act` actors of an agent session. Each carries out one piece of a turn, and is aborted when the chart leaves its
 * state.
 */
import { setMaxListeners } from 'node:events';
import { fromCallback } from 'xstate';
import type { AgentSessionContext, AgentSessionEvent } from '#machines/agent-session.ts';
import type { Failure } from '#src/base/errors/errors.ts';
import type { PromptTurn } from './prompt-turn.ts';

/** Returns the turn of the prompt that a session is answering. */
type TurnOf = (context: AgentSessionContext) => PromptTurn;

/** Called on an internal error; the run ends with `BROKEN`. */
type OnFault = (error: unknown) => void;

const BROKEN: Failure = {
  code: 'agent_failed',
  message: 'The agent could not continue because of a fault of the server.',
};

type Stop = { type: 'stop' };

export function thinkDriver(turnOf: TurnOf, onFault: OnFault) {
  return fromCallback<Stop, AgentSessionContext>(({ input, sendBack }) => {
    const report = (event: AgentSessionEvent): void => sendBack(event);
    const abort = new AbortController();
    turnOf(input)
      .think(abort.signal)
      .then(report, (error) => {
        if (abort.signal.aborted) return; // the chart has left the state, so the result is no longer needed
        onFault(error);
        report({ type: 'step.failed', failure: BROKEN, retryMs: null, tokens: 0 });
      });
    return () => abort.abort();
  });
}

export function actDriver(turnOf: TurnOf, onFault: OnFault) {
  return fromCallback<Stop, AgentSessionContext>(({ input, sendBack, receive }) => {
    const report = (event: AgentSessionEvent): void => sendBack(event);
    const abort = new AbortController();
    setMaxListeners(0, abort.signal); // each of a step's calls adds a listener
    receive(() => abort.abort());
    turnOf(input)
      .act(abort.signal)
      .catch(onFault)
      .then(() => report({ type: 'tools.done' }), onFault);
    return () => abort.abort();
  });
}
