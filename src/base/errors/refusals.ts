import type { ErrorCode } from './errors.ts';

/** The `meta` of a chart's state: the error code with which the state refuses a command, by the type of the event. */
export interface Refusals<EventType extends string = string> {
  readonly refuse?: { readonly [Type in EventType]?: ErrorCode };
}

/**
 * The condition of a request that changes an object. It is called with the object's state, in the
 * turn that would change it, and throws when the request expects another state.
 */
export type StateCheck<State> = (state: State) => void;
