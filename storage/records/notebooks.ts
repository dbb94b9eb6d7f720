import { defineRecord } from '../codec.ts';

/** A saved notebook, stored in the form in which it is served. */
export interface NotebookRecord {
  readonly updatedAt: string;
  /** JSON of the whole notebook. */
  readonly document: Uint8Array;
}

/** Created in the home of the workspace, and written in that of the notebook from then on. Key: workspace id, notebook id. */
export const notebookRecords = defineRecord<NotebookRecord>('notebook', 1);

/** The part of a notebook that lists show, apart from its code, which they need not read. */
export interface NotebookSummaryRecord {
  readonly title: string | null;
  /** By which lists are filtered. Absent when it has none. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** JSON of its entry in lists. */
  readonly summary: Uint8Array;
}

/** Key: workspace id, notebook id. Every notebook has one. */
export const notebookSummaries = defineRecord<NotebookSummaryRecord>('notebook-summary', 1);

/** The last output and console of one cell, so that a reopened notebook shows them. */
export interface CellOutputRecord {
  /** The output without its large parts, which are stored apart. */
  readonly output: unknown;
  readonly console: readonly unknown[];
  /** The code that produced it, or its hash when it is long; in older records always the code itself. */
  readonly code: string;
  /** Absent in records of version 1. */
  readonly held?: readonly HeldPart[];
}

/** A large part of an output, which is a blob. */
export interface HeldPart {
  /** 0 is the output, and n the n-th entry of the console. */
  readonly entry: number;
  /** The MIME type of the part: that of the entry, or that in the entry's bundle. */
  readonly type: string;
  readonly sha256: string;
  /** The text before the base64 bytes when the part is a data URL; null when the bytes are its text. */
  readonly urlStart: string | null;
  /** Whether the text is the JSON of the part. */
  readonly isJson: boolean;
}

/** Key: workspace id, notebook id, cell id. */
export const cellOutputRecords = defineRecord<CellOutputRecord>(
  'cell-output',
  2,
  (value) => value as CellOutputRecord,
);

/**
 * The names of a notebook's secret variables, with the user and time of each; their values are sealed. Key: workspace
 * id, notebook id.
 */
export interface NotebookSecretsRecord {
  readonly byName: Readonly<Record<string, { readonly updatedBy: string; readonly updatedAt: string }>>;
}
export const notebookSecretRecords = defineRecord<NotebookSecretsRecord>('notebook-secrets', 1);

const SECRET_PREFIX = 'notebook-secret:';

/** Returns the name under which the secret variable of a notebook is sealed. It is never a datasource's: no slug has a colon. */
export function sealedSecretName(notebookId: string, name: string): string {
  return `${SECRET_PREFIX}${notebookId}:${name}`;
}

/** Returns the notebook whose secret variable is sealed under a name; undefined for secrets of the whole workspace. */
export function notebookOfSealed(name: string): string | undefined {
  return name.startsWith(SECRET_PREFIX) ? name.slice(SECRET_PREFIX.length).split(':', 1)[0] : undefined;
}
