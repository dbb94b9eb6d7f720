import type { ErrorCode } from './errors.ts';

/** The `meta` of a chart's state: the error code with which the state refuses a command, by the type of the event. */
export interface Refusals<EventType extends string = string> {
  readonly refuse?: { readonly [Type in EventType]?: ErrorCode };
}
