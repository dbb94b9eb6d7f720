import { defineRecord } from './codec.ts';

/** A saved notebook, stored as it is served. */
export interface NotebookRecord {
  readonly updatedAt: string;
  /** JSON of what a list shows of it. */
  readonly summary: Uint8Array;
  /** JSON of the whole notebook. */
  readonly document: Uint8Array;
}

/** Key: workspace id, notebook id. */
export const notebookRecords = defineRecord<NotebookRecord>('notebook', 1);

/** The last output and console of one cell, kept so that a reopened notebook shows them. */
export interface CellOutputRecord {
  readonly output: unknown;
  readonly console: readonly unknown[];
  /** Which code made it. */
  readonly code: string;
}

/** Key: workspace id, notebook id, cell id. */
export const cellOutputRecords = defineRecord<CellOutputRecord>('cell-output', 1);
