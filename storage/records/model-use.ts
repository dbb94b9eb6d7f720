import { defineRecord } from '../codec.ts';

/** The tokens that a member has spent with a model on one day, as far as one worker has counted them. */
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
 * Written in the commit of the answer that is counted. The parts of a sum are apart by worker, so that each has one writer. They
 * outlive the runs, the conversations and the membership that they come from. Key: workspace id, UTC day, user id, model, number of
 * the worker.
 */
export const modelUse = defineRecord<ModelUseRecord>('model-use', 1);
