import type { ResyncReason } from '#src/contract/wire/shape.ts';
import type { Heartbeats } from './heartbeats.ts';
import type { StreamBudget } from './stream-budget.ts';

/** The parts that all event streams of a process share. */
export interface ProcessStreams {
  /** The most bytes that a subscriber may lag. */
  readonly limitBytes: number;
  readonly heartbeats: Heartbeats | undefined;
  /** The budget to which the memory for lagging subscribers is charged. */
  readonly budget: StreamBudget | undefined;
  /** Called for each subscriber that is cut off. */
  readonly onCutOff: ((reason: ResyncReason) => void) | undefined;
}
