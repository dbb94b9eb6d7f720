import type { ErrorCode } from './errors.ts';

/**
 * What a state of a chart says of commands that it does not take: the `meta` of the state names the error code by the
 * type of the event.
 */
export interface Refusals<EventType extends string = string> {
  readonly refuse?: { readonly [Type in EventType]?: ErrorCode };
}
