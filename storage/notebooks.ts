import { defineRecord } from './codec.ts';

/** A saved notebook, stored in the form in which it is served. */
export interface NotebookRecord {
  readonly updatedAt: string;
  /** JSON of the whole notebook. */
  readonly document: Uint8Array;
}

/** Key: workspace id, notebook id. */
export const notebookRecords = defineRecord<NotebookRecord>('notebook', 1);

/** What lists show of a notebook, apart from its code, which they need not read. */
export interface NotebookSummaryRecord {
  readonly title: string | null;
  /** JSON of its entry in lists. */
  readonly summary: Uint8Array;
}

/** Key: workspace id, notebook id. Every notebook has one. */
export const notebookSummaries = defineRecord<NotebookSummaryRecord>('notebook-summary', 1);

/** The last output and console of one cell, so that a reopened notebook shows them. */
export interface CellOutputRecord {
  readonly output: unknown;
  readonly console: readonly unknown[];
  /** The code that produced it. */
  readonly code: string;
}

/** Key: workspace id, notebook id, cell id. */
export const cellOutputRecords = defineRecord<CellOutputRecord>('cell-output', 1);

/** Which secret variables a notebook has, and who set them when; their values are sealed. Key: workspace id, notebook id. */
export interface NotebookSecretsRecord {
  readonly byName: Readonly<Record<string, { readonly updatedBy: string; readonly updatedAt: string }>>;
}
export const notebookSecretRecords = defineRecord<NotebookSecretsRecord>('notebook-secrets', 1);
