import { defineRecord } from './codec.ts';

/** A run, stored as it is served. */
export interface RunRecord {
  readonly sessionId: string;
  readonly status: string;
  /** JSON of the run record. */
  readonly document: Uint8Array;
}

/** Key: workspace id, run id. */
export const runRecords = defineRecord<RunRecord>('run', 1);

/** The runs of one session, oldest first. Key: workspace id, session id, run id. */
export const sessionRuns = defineRecord<null>('session-run', 1);

export interface AssetRecord {
  readonly mimetype: string;
  readonly sha256: string;
  readonly bytes: Uint8Array;
}

/** Outputs too large to stand in a run record. Key: workspace id, run id, asset id. */
export const assetRecords = defineRecord<AssetRecord>('asset', 1);
