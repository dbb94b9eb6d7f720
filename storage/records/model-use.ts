import { defineRecord } from '../codec.ts';

/** The tokens that a member has spent with a model on one day, in the count of one worker. */
export interface ModelUseRecord {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly calls: number;
  /** How many of the calls have figures that were estimated. */
  readonly estimatedCalls: number;
}

/**
 * Written in the commit of the answer that is counted. Each worker has a record of its own, so that each record has
 * one writer. The records outlive the runs, the conversations and the membership that they come from. Key: workspace
 * id, UTC day, user id, model, number of the worker.
 */
export const modelUse = defineRecord<ModelUseRecord>('model-use', 1);
