import { defineRecord } from './codec.ts';

/** A run, stored in the form in which it is served. */
export interface RunRecord {
  readonly sessionId: string;
  readonly status: string;
  /** Absent means `notebook`. */
  readonly kind?: 'notebook' | 'agent';
  /** JSON of the run record. */
  readonly document: Uint8Array;
}

/** Key: workspace id, run id. */
export const runRecords = defineRecord<RunRecord>('run', 1);

/** Index of the executions of one notebook session, oldest first. Key: workspace id, session id, run id. */
export const sessionRuns = defineRecord<null>('session-run', 1);

/** Index of the prompts of one conversation, oldest first. Key: workspace id, conversation id, run id. */
export const agentRuns = defineRecord<null>('agent-run', 1);

export interface AssetRecord {
  readonly mimetype: string;
  readonly sha256: string;
  readonly bytes: Uint8Array;
}

/** An output that is too large for the run record. Key: workspace id, run id, asset id. */
export const assetRecords = defineRecord<AssetRecord>('asset', 1);
