import type { ErrorCode } from './errors.ts';

/** The `meta` of a chart's state: the error code with which the state refuses a command, by the type of the event. */
export interface Refusals<EventType extends string = string> {
  readonly refuse?: { readonly [Type in EventType]?: ErrorCode };
}

/**
 * The condition of a request that changes a thing: called with the state of the thing, in the turn that would change it. It throws when
 * that is not the state which the request expects.
 */
export type StateCheck<State> = (state: State) => void;
